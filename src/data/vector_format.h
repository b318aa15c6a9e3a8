#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/vector_layout.h"
#include "simile/limits.h"

namespace simile::data {

// A format of vector files. All that the loader, discovery, inspection and messages know of it is
// its row in vector_format.cpp: a new one is a header reader and a row. Its rows must be contiguous
// and in order behind the header, because a ByteSource cannot seek.
struct VectorFormat {
  std::string_view ending;                 // of the file's name: ".npy"
  bool (*begins)(std::string_view bytes);  // whether a file's first bytes are of this format
  bool names_tensors = false;  // one file holds several matrices, of which `tensor` chooses one
  // Reads the header and leaves the reader at the first row; see ReadVectorLayout.
  absl::StatusOr<VectorLayout> (*read_header)(BufferedReader& in, std::string_view tensor,
                                              const Limits& limits);
};

std::span<const VectorFormat> VectorFormats();

// By the ending of a file's name; null when no format has it.
const VectorFormat* FindVectorFormat(std::string_view name);

// Reads the header of a vector file, whose name tells its format, and leaves the reader at the
// first row.
//   tensor  which of the file's tensors, where they are named; empty: its only one
// Errors: kInvalidArgument beginning with the file's name.
absl::StatusOr<VectorLayout> ReadVectorLayout(BufferedReader& in, std::string_view tensor,
                                              const Limits& limits);

}  // namespace simile::data
