#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "recommend/query_request.h"
#include "simile/limits.h"

namespace simile::v1 {
class Diversity;
class Fallback;
class GroupBy;
}  // namespace simile::v1

namespace simile::service {

// What an answer is to be made into, beyond the nearest rows. `field` is what messages call it:
// "options.diversity". All errors are kInvalidArgument; all checks are pure.

//   k  of the query, for the default of candidates
absl::StatusOr<engine::Diversity> ValidateDiversity(std::string_view field,
                                                    const v1::Diversity& from, std::uint32_t k,
                                                    const Limits& limits);
absl::StatusOr<recommend::GroupRequest> ValidateGroupBy(std::string_view field,
                                                        const v1::GroupBy& from,
                                                        const Limits& limits);
absl::StatusOr<recommend::Fallback> ValidateFallback(const v1::Fallback& from,
                                                     const Limits& limits);

// Whether so many rows or groups, counted from the best, are within a query's bounds.
//   path  "queries[3]"
//   skipped  offset, and the pages before; k follow
absl::Status CheckReach(std::string_view path, std::uint64_t skipped,
                        const recommend::QueryRequest& query, const Limits& limits);

}  // namespace simile::service
