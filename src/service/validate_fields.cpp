#include "service/validate_fields.h"

#include <cmath>

#include "base/message_text.h"
#include "service/collection_name.h"
#include "service/refuse.h"
#include "simile/v1/lookup.pb.h"

namespace simile::service {

absl::Status CheckId(const FieldPath& field, std::string_view id, const Limits& limits) {
  if (id.empty()) return Refuse(field, "empty; an id has 1 to {} bytes", limits.id_bytes_max);
  if (id.size() <= limits.id_bytes_max) return absl::OkStatus();
  return Refuse(field, "{} bytes; an id has at most {}", base::Grouped(id.size()),
                limits.id_bytes_max);
}

absl::Status CheckCount(const FieldPath& field, std::uint64_t count, std::uint32_t most) {
  if (count >= 1 && count <= most) return absl::OkStatus();
  return Refuse(field, "{} given; a call takes 1 to {}", base::Grouped(count), base::Grouped(most));
}

absl::Status CheckK(const FieldPath& field, std::uint32_t k, const Limits& limits) {
  if (k >= 1 && k <= limits.k_max) return absl::OkStatus();
  return Refuse(field, "{}; ask for 1 to {}", base::Grouped(k), base::Grouped(limits.k_max));
}

absl::Status CheckScoreThreshold(const FieldPath& field, float score_threshold) {
  if (std::isfinite(score_threshold)) return absl::OkStatus();
  return Refuse(field, "{}; give a finite number, or leave it out for no threshold",
                std::isnan(score_threshold) ? "NaN" : "infinite");
}

absl::Status CheckFilterSize(const FieldPath& field, std::string_view filter,
                             const Limits& limits) {
  if (filter.size() <= limits.filter_bytes_max) return absl::OkStatus();
  return Refuse(field, "{} bytes; a filter may have {}; allow_ids takes long lists of ids",
                base::Grouped(filter.size()), base::Grouped(limits.filter_bytes_max));
}

absl::StatusOr<AnswerOptions> ValidateFetch(const v1::FetchRequest& request, const Limits& limits) {
  absl::Status status = CheckCollectionName({"collection"}, request.collection(), limits);
  status.Update(
      CheckCount({"ids"}, static_cast<std::uint64_t>(request.ids_size()), limits.fetch_ids_max));
  // With partial a wrong id is refused where it would be found.
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
