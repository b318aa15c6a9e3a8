#include "service/requests/answer_options.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "service/requests/request_fields.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

using v1::PayloadSelector;

// How many fields an error lists. It gives only the number of the rest.
constexpr std::size_t kFieldsListedMax = 20;

absl::Status UnknownField(const FieldPath& field, std::string_view collection,
                          std::string_view name, const filter::PayloadView& fields) {
  std::vector<std::string> known;
  for (const filter::Field& each : fields.fields()) known.push_back(each.name);
  std::string what = fmt::format("{} has no field {}.", collection, base::Quoted(name));
  if (known.empty()) {
    what += " It has no payload (no metadata.jsonl).";
  } else {
    what += base::DidYouMean(base::NearestName(name, known));
    const std::size_t listed = std::min(known.size(), kFieldsListedMax);
    what += fmt::format(
        " Fields: {}",
        fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(listed), ", "));
    what += listed < known.size() ? fmt::format(" and {} more.", known.size() - listed) : ".";
  }
  return RefuseFor(base::ErrorReason::kUnknownPayloadField, field, "{}", what);
}

}  // namespace

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

absl::Status CheckPayloadSelector(const FieldPath& field, const PayloadSelector& selector,
                                  const Limits& limits) {
  const PayloadSelector::Selection selection = selector.selection();
  if (!PayloadSelector::Selection_IsValid(selection)) {
    return RefuseEnum({"selection", &field}, selection,
                      "SELECTION_ALL or SELECTION_NONE, or name fields instead");
  }
  const FieldPath fields{"fields", &field};
  const auto count = static_cast<std::uint32_t>(selector.fields_size());
  if (count > 0 && selection != PayloadSelector::SELECTION_UNSPECIFIED) {
    return Refuse(fields, "{} named together with {}; leave one of them out",
                  base::Counted(count, "field"), PayloadSelector::Selection_Name(selection));
  }
  if (count <= limits.payload_fields_max) return absl::OkStatus();
  return Refuse(fields, "{} named; at most {}", base::Counted(count, "field"),
                limits.payload_fields_max);
}

absl::StatusOr<PayloadSelection> SelectPayload(const FieldPath& field, std::string_view collection,
                                               const PayloadSelector& selector,
                                               const data::PayloadTable& payload,
                                               const filter::PayloadView& fields) {
  const bool named = !selector.fields().empty();
  PayloadSelection selection;
  selection.none = selector.selection() == PayloadSelector::SELECTION_NONE ||
                   (!named && payload.row_count() == 0);
  selection.all = !selection.none && !named;
  for (int index = 0; index < selector.fields_size(); ++index) {
    const std::string& name = selector.fields(index);
    const auto number = payload.FieldNumber(name);
    if (!number || fields.Find(name) == nullptr) {
      return UnknownField({"fields", &field, index}, collection, name, fields);
    }
    selection.field_numbers.push_back(*number);
  }
  std::vector<std::uint32_t>& numbers = selection.field_numbers;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return selection;
}

}  // namespace simile::service
