#pragma once

#include <string_view>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/vector_layout.h"
#include "simile/limits.h"

namespace simile::data {

// Reads the header of a .safetensors file and leaves the reader at the first row of one tensor.
// Checks the whole header, not only that tensor: offsets that fill the data without holes or
// overlaps, sizes that agree with shapes, no name twice. The tensor must be F16, BF16, F32 or F64
// with two axes.
//   tensor  its name; empty: the file's only tensor
// Errors: kInvalidArgument beginning with the file's name, saying what would be right.
absl::StatusOr<VectorLayout> ReadSafetensorsHeader(BufferedReader& in, std::string_view tensor,
                                                   const Limits& limits);

}  // namespace simile::data
