#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "service/field_path.h"

namespace simile::v1 {
class PackedVector;
}

namespace simile::service {

// The floats of a packed vector; FORMAT_F16_LE is widened exactly. ResolveQueries checks that they
// are finite, as for every vector.
//   dim_max  numbers allowed
// Errors: INVALID_FIELD for a format that is not set or not known, for no bytes, for a size that is
//         no multiple of a number's, and for too many numbers.
absl::StatusOr<std::vector<float>> UnpackVector(const FieldPath& field,
                                                const v1::PackedVector& packed,
                                                std::uint32_t dim_max);

}  // namespace simile::service
