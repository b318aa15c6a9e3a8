#include "service/validate_refinement.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/message_text.h"
#include "service/refuse.h"
#include "service/validate_fields.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr std::uint64_t kCandidatesPerHit = 10;
constexpr std::uint64_t kCandidatesMin = 100;

absl::Status CheckFieldName(const FieldPath& field, std::string_view name, const Limits& limits) {
  if (name.size() <= limits.field_name_bytes_max) return absl::OkStatus();
  return Refuse("{}: {} bytes; a field's name has at most {}", field, base::Grouped(name.size()),
                limits.field_name_bytes_max);
}

}  // namespace

absl::StatusOr<engine::Diversity> ValidateDiversity(const FieldPath& field,
                                                    const v1::Diversity& from, std::uint32_t k,
                                                    const Limits& limits) {
  engine::Diversity diversity;
  if (from.has_lambda()) diversity.lambda = from.lambda();
  // NaN fails both.
  if (!(diversity.lambda >= 0 && diversity.lambda <= 1)) {
    return Refuse("{}.lambda: {}; give 0 (difference alone) to 1 (score alone)", field,
                  diversity.lambda);
  }
  const std::uint64_t usual = std::clamp<std::uint64_t>(kCandidatesPerHit * k, kCandidatesMin,
                                                        limits.diversity_candidates_max);
  diversity.candidates =
      from.has_candidates() ? from.candidates() : static_cast<std::uint32_t>(usual);
  if (diversity.candidates < 1 || diversity.candidates > limits.diversity_candidates_max) {
    return Refuse("{}.candidates: {}; give 1 to {}", field, base::Grouped(diversity.candidates),
                  base::Grouped(limits.diversity_candidates_max));
  }
  return diversity;
}

absl::StatusOr<query::GroupRequest> ValidateGroupBy(const FieldPath& field, const v1::GroupBy& from,
                                                    const Limits& limits) {
  if (from.field().empty()) return Refuse("{}.field: empty; name a field of keywords", field);
  absl::Status status = CheckFieldName({"field", &field}, from.field(), limits);
  if (!status.ok()) return status;
  query::GroupRequest group_by{from.field(), from.has_group_size() ? from.group_size() : 1};
  status = CheckK({"group_size", &field}, group_by.group_size, limits);
  if (!status.ok()) return status;
  return group_by;
}

absl::StatusOr<query::ColdStart> ValidateColdStart(const v1::ColdStart& from,
                                                   const Limits& limits) {
  absl::Status status = CheckFieldName({"options.cold_start.field"}, from.field(), limits);
  if (!status.ok()) return status;
  query::ColdStart cold_start;
  cold_start.field = from.field();
  switch (from.order()) {
    case v1::ColdStart::NEWEST:
      cold_start.order = query::ColdStart::Order::kNewest;
      return cold_start;
    case v1::ColdStart::MOST_POPULAR:
      cold_start.order = query::ColdStart::Order::kMostPopular;
      return cold_start;
    default:
      return Refuse("options.cold_start.order: {}; set NEWEST or MOST_POPULAR",
                    from.order() == v1::ColdStart::ORDER_UNSPECIFIED
                        ? "not set"
                        : fmt::format("{} is unknown", static_cast<int>(from.order())));
  }
}

absl::Status CheckReach(const FieldPath& path, std::uint64_t skipped,
                        const query::QueryRequest& query, const Limits& limits) {
  const std::uint64_t last = skipped + query.k;
  if (query.group_by && last * query.group_by->group_size > limits.k_max) {
    return Refuse(
        "{}.group_by: {} groups of {} rows are more than {}; ask for fewer or smaller ones", path,
        base::Grouped(last), base::Grouped(query.group_by->group_size),
        base::Grouped(limits.k_max));
  }
  if (query.diversity && last > query.diversity->candidates) {
    return Refuse(
        "{}.diversity: {} rows are wanted, offset included, of {} candidates; raise candidates (up "
        "to {})",
        path, base::Grouped(last), base::Grouped(query.diversity->candidates),
        base::Grouped(limits.diversity_candidates_max));
  }
  if (last <= limits.k_max) return absl::OkStatus();
  return Refuse("{}.offset: {} with k {} reaches past {}; offset + k may be at most that", path,
                base::Grouped(skipped), base::Grouped(query.k), base::Grouped(limits.k_max));
}

}  // namespace simile::service
