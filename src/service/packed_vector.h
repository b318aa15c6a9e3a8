#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace simile::v1 {
class PackedVector;
}

namespace simile::service {

// The floats of a packed vector, f16 widened exactly. Whether they are finite is checked with every
// other vector, against the collection (recommend/resolve.h).
//   field  what messages call it: "queries[3].packed_vector"
// Errors: kInvalidArgument for a format that is not set or not known, no bytes, bytes that are not
//         whole numbers, or more than dim_max of them.
absl::StatusOr<std::vector<float>> UnpackVector(std::string_view field,
                                                const v1::PackedVector& packed,
                                                std::uint32_t dim_max);

// The value of IEEE binary16 bits, exactly; NaN keeps being NaN.
float FloatOfHalf(std::uint16_t half);

}  // namespace simile::service
