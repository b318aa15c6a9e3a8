#include "service/answer_options.h"

#include "base/message_text.h"
#include "service/payload_selection.h"
#include "service/request_fields.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

template <class Message>
absl::StatusOr<AnswerOptions> ValidateAnswerOptions(const FieldPath* parent, const Message& message,
                                                    const Limits& limits) {
  absl::Status status =
      CheckFilterSize({"required_filter", parent}, message.required_filter(), limits);
  status.Update(CheckPayloadSelector({"payload", parent}, message.payload(), limits));
  if (!status.ok()) return status;
  AnswerOptions options{.expected_snapshot_id = message.expected_snapshot_id(),
                        .required_filter = message.required_filter(),
                        .payload = &message.payload(),
                        .with_vectors = message.with_vectors(),
                        .with_rows = message.with_rows(),
                        .reply_bytes_max = limits.reply_bytes_default};
  if (!message.has_reply_bytes_max()) return options;
  options.reply_bytes_max = message.reply_bytes_max();
  if (options.reply_bytes_max >= 1 && options.reply_bytes_max <= limits.reply_bytes_max) {
    return options;
  }
  return Refuse({"reply_bytes_max", parent}, "{}; give 1 to {}",
                base::Grouped(options.reply_bytes_max), base::Grouped(limits.reply_bytes_max));
}

template absl::StatusOr<AnswerOptions> ValidateAnswerOptions(const FieldPath*,
                                                             const v1::SearchOptions&,
                                                             const Limits&);
template absl::StatusOr<AnswerOptions> ValidateAnswerOptions(const FieldPath*,
                                                             const v1::FetchRequest&,
                                                             const Limits&);
template absl::StatusOr<AnswerOptions> ValidateAnswerOptions(const FieldPath*,
                                                             const v1::LookupRequest&,
                                                             const Limits&);

absl::Status CheckSnapshotId(const FieldPath& field, std::string_view expected,
                             std::string_view collection, const std::string& id) {
  if (expected.empty() || expected == id) return absl::OkStatus();
  return RefuseFor(base::ErrorReason::kSnapshotMismatch, field, "{} has content {}, not {}",
                   collection, base::Quoted(id), base::Quoted(expected));
}

absl::StatusOr<AnswerOptions> ValidateFetch(const v1::FetchRequest& request, const Limits& limits) {
  absl::Status status = CheckCollectionName({"collection"}, request.collection(), limits);
  status.Update(
      CheckCount({"ids"}, static_cast<std::uint64_t>(request.ids_size()), limits.fetch_ids_max));
  // With partial an invalid id gets its error where it is looked up.
  for (int index = 0; status.ok() && !request.partial() && index < request.ids_size(); ++index) {
    status = CheckId({"ids", nullptr, index}, request.ids(index), limits);
  }
  if (!status.ok()) return status;
  return ValidateAnswerOptions(nullptr, request, limits);
}

absl::StatusOr<AnswerOptions> ValidateLookup(const v1::LookupRequest& request,
                                             const Limits& limits) {
  absl::Status status = CheckCollectionName({"collection"}, request.collection(), limits);
  if (!status.ok()) return status;
  if (request.text().empty() || request.text().size() > limits.lookup_text_bytes_max) {
    return Refuse({"text"}, "{}; give 1 to {}", base::Counted(request.text().size(), "byte"),
                  limits.lookup_text_bytes_max);
  }
  if (request.has_limit() && (request.limit() < 1 || request.limit() > limits.lookup_hits_max)) {
    return Refuse({"limit"}, "{}; ask for 1 to {}", base::Grouped(request.limit()),
                  base::Grouped(limits.lookup_hits_max));
  }
  return ValidateAnswerOptions(nullptr, request, limits);
}

}  // namespace simile::service
