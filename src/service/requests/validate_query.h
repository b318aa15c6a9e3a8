#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/query/query_request.h"
#include "service/requests/request_fields.h"
#include "simile/limits.h"

namespace simile::v1 {
class ColdStart;
class Diversity;
class GroupBy;
class PackedVector;
class Query;
}  // namespace simile::v1

namespace simile::service {

// Checks a packed vector and returns a view of its data. ResolveQueries checks that the numbers are
// finite.
//   data     of the vector; the message may lack it
//   dim_max  numbers allowed
// Errors: INVALID_FIELD for an unset or unknown format, for no bytes, for a size that is no
// multiple of a number's size, and for too many numbers.
absl::StatusOr<engine::VectorBytes> ValidateVectorBytes(const FieldPath& field,
                                                        const v1::PackedVector& packed,
                                                        std::string_view data,
                                                        std::uint32_t dim_max);

// Sets the query's target: vector, item, user, examples or blend.
//   path          "queries[3]"
//   sent_data     data of the packed vector if the message lacks it; else empty
//   collection    the searched one
//   exclude_seen  for a target with a user
// Errors: INVALID_FIELD. Pure; O(size of the query).
absl::Status SetTarget(const FieldPath& path, const v1::Query& from, std::string_view sent_data,
                       std::string_view collection, bool exclude_seen, const Limits& limits,
                       engine::QueryRequest& query);

// Checks of the options that change what the answer consists of. `field` is the path of the
// message, such as "options.diversity". All errors are INVALID_FIELD; all checks are pure.

//   k  of the query, for the default of candidates
absl::StatusOr<engine::Diversity> ValidateDiversity(const FieldPath& field,
                                                    const v1::Diversity& from, std::uint32_t k,
                                                    const Limits& limits);
absl::StatusOr<engine::GroupRequest> ValidateGroupBy(const FieldPath& field,
                                                     const v1::GroupBy& from, const Limits& limits);
absl::StatusOr<engine::ColdStart> ValidateColdStart(const FieldPath& field,
                                                    const v1::ColdStart& from,
                                                    const Limits& limits);

// Checks that the k rows or groups after the first `skipped` are within the query's bounds.
//   path     "queries[3]"
//   skipped  the offset, the pages before included
absl::Status CheckReach(const FieldPath& path, std::uint64_t skipped,
                        const engine::QueryRequest& query, const Limits& limits);

}  // namespace simile::service
