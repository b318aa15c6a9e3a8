#pragma once

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/vector_layout.h"
#include "simile/limits.h"

namespace simile::data {

// Reads the header of a NumPy .npy file (format versions 1.0, 2.0, 3.0; NEP 1) and leaves the
// reader at the first row. Accepts what can be served: float16, float32 or float64, little-endian,
// C order, two axes, and exactly as many bytes as the shape says.
// Errors: kInvalidArgument beginning with the file's name, saying what would be right.
absl::StatusOr<VectorLayout> ReadNpyHeader(BufferedReader& in, const Limits& limits);

// Whether a file's first bytes are those of a .npy file.
bool BeginsNpy(std::string_view bytes);

}  // namespace simile::data
