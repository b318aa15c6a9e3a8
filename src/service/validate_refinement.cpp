#include "service/validate_refinement.h"

#include <algorithm>

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
  return Refuse(field, "{} bytes; a field's name has at most {}", base::Grouped(name.size()),
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
    return Refuse({"lambda", &field}, "{}; give 0 (difference alone) to 1 (score alone)",
                  diversity.lambda);
  }
  const std::uint64_t usual = std::clamp<std::uint64_t>(kCandidatesPerHit * k, kCandidatesMin,
                                                        limits.diversity_candidates_max);
  diversity.candidates =
      from.has_candidates() ? from.candidates() : static_cast<std::uint32_t>(usual);
  if (diversity.candidates < 1 || diversity.candidates > limits.diversity_candidates_max) {
    return Refuse({"candidates", &field}, "{}; give 1 to {}", base::Grouped(diversity.candidates),
                  base::Grouped(limits.diversity_candidates_max));
  }
  return diversity;
}

absl::StatusOr<query::GroupRequest> ValidateGroupBy(const FieldPath& field, const v1::GroupBy& from,
                                                    const Limits& limits) {
  const FieldPath name{"field", &field};
  if (from.field().empty()) return Refuse(name, "empty; name a field of keywords or integers");
  absl::Status status = CheckFieldName(name, from.field(), limits);
  if (!status.ok()) return status;
  query::GroupRequest group_by{from.field(), from.has_group_size() ? from.group_size() : 1};
  status = CheckK({"group_size", &field}, group_by.group_size, limits);
  if (!status.ok()) return status;
  return group_by;
}

absl::StatusOr<query::ColdStart> ValidateColdStart(const FieldPath& field,
                                                   const v1::ColdStart& from,
                                                   const Limits& limits) {
  absl::Status status = CheckFieldName({"field", &field}, from.field(), limits);
  if (!status.ok()) return status;
  query::ColdStart cold_start;
  cold_start.field = from.field();
  switch (from.order()) {
    case v1::ColdStart::ORDER_NEWEST:
      cold_start.order = query::ColdStart::Order::kNewest;
      return cold_start;
    case v1::ColdStart::ORDER_MOST_POPULAR:
      cold_start.order = query::ColdStart::Order::kMostPopular;
      return cold_start;
    default:
      return RefuseEnum({"order", &field}, from.order(), "ORDER_NEWEST or ORDER_MOST_POPULAR");
  }
}

absl::Status CheckReach(const FieldPath& path, std::uint64_t skipped,
                        const query::QueryRequest& query, const Limits& limits) {
  const std::uint64_t last = skipped + query.k;
  if (query.group_by && last * query.group_by->group_size > limits.k_max) {
    return Refuse({"group_by", &path},
                  "{} groups of {} rows are more than {}; ask for fewer or smaller ones",
                  base::Grouped(last), base::Grouped(query.group_by->group_size),
                  base::Grouped(limits.k_max));
  }
  if (query.diversity && last > query.diversity->candidates) {
    const FieldPath diversity{"diversity", &path};
    return Refuse({"candidates", &diversity},
                  "{}; {} rows are wanted, offset included: raise it (up to {}), or lower k",
                  base::Grouped(query.diversity->candidates), base::Grouped(last),
                  base::Grouped(limits.diversity_candidates_max));
  }
  if (last <= limits.k_max) return absl::OkStatus();
  return Refuse({"offset", &path},
                "{}; with k {} that reaches past {}, the most that both may add up to",
                base::Grouped(skipped), base::Grouped(query.k), base::Grouped(limits.k_max));
}

}  // namespace simile::service
