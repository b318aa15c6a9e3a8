#pragma once

#include <cstdint>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "query/query_request.h"
#include "service/field_path.h"
#include "simile/limits.h"

namespace simile::v1 {
class Diversity;
class ColdStart;
class GroupBy;
}  // namespace simile::v1

namespace simile::service {

// Checks of the options that change what the answer consists of. `field` is the path of the
// message, such as "options.diversity". All errors are INVALID_FIELD; all checks are pure.

//   k  of the query, for the default of candidates
absl::StatusOr<engine::Diversity> ValidateDiversity(const FieldPath& field,
                                                    const v1::Diversity& from, std::uint32_t k,
                                                    const Limits& limits);
absl::StatusOr<query::GroupRequest> ValidateGroupBy(const FieldPath& field, const v1::GroupBy& from,
                                                    const Limits& limits);
absl::StatusOr<query::ColdStart> ValidateColdStart(const FieldPath& field,
                                                   const v1::ColdStart& from, const Limits& limits);

// Checks that the k rows or groups after the first `skipped` are within the query's bounds.
//   path     "queries[3]"
//   skipped  the offset, the pages before included
absl::Status CheckReach(const FieldPath& path, std::uint64_t skipped,
                        const query::QueryRequest& query, const Limits& limits);

}  // namespace simile::service
