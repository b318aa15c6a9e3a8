#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/statusor.h>

#include "query/query_request.h"
#include "service/field_path.h"

namespace simile::v1 {
class PackedVector;
}

namespace simile::service {

// Checks a packed vector and returns a view of its data. ResolveQueries checks that the numbers are
// finite.
//   data     of the vector; the message may lack it
//   dim_max  numbers allowed
// Errors: INVALID_FIELD for a format that is not set or not known, for no bytes, for a size that is
//         no multiple of a number's, and for too many numbers.
absl::StatusOr<query::VectorBytes> VectorBytesOf(const FieldPath& field,
                                                 const v1::PackedVector& packed,
                                                 std::string_view data, std::uint32_t dim_max);

}  // namespace simile::service
