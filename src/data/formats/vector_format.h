#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/formats/vector_layout.h"
#include "simile/limits.h"

namespace simile::data {

// A format of vector files. The loader, discovery, inspection and messages know only its row in
// vector_format.cpp: a new format is a header reader and a row. Its numbers must follow the header
// without gaps, row after row or column after column.
struct VectorFormat {
  std::string_view ending;                 // of the file's name: ".npy"
  bool (*begins)(std::string_view bytes);  // whether a file's first bytes are of this format
  bool names_tensors = false;              // one file holds several matrices; `tensor` chooses one
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

// Reads the header of a NumPy .npy file (format versions 1.0, 2.0, 3.0; NEP 1) and leaves the
// reader at the first number. Accepts arrays that can be served: float16, float32 or float64,
// little-endian, C or Fortran order, two axes, and exactly as many bytes as the shape says.
// Errors: kInvalidArgument beginning with the file's name, saying what would be right.
absl::StatusOr<VectorLayout> ReadNpyHeader(BufferedReader& in, const Limits& limits);

// Whether a file's first bytes are those of a .npy file.
bool BeginsNpy(std::string_view bytes);

// The dictionary in a .npy header.
struct NpyDict {
  std::string descr;  // "<f2"; for a structured type its text, beginning with '['
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

// Parses the Python literal {'descr': ..., 'fortran_order': ..., 'shape': ...}: any order of keys,
// any spacing, either quote, a trailing comma or none; the three keys once each and no others.
// Nothing is evaluated.
// Errors: kInvalidArgument with `column N: ...`, columns from 1; the caller adds the file.
absl::StatusOr<NpyDict> ParseNpyDict(std::string_view text);

// Reads the header of a .safetensors file and leaves the reader at the first row of one tensor.
// Checks the whole header, not only that tensor: offsets that fill the data without holes or
// overlaps, sizes that agree with shapes, no name twice. The tensor must be F16, BF16, F32 or F64
// with two axes.
//   tensor  its name; empty: the file's only tensor
// Errors: kInvalidArgument beginning with the file's name, saying what would be right.
absl::StatusOr<VectorLayout> ReadSafetensorsHeader(BufferedReader& in, std::string_view tensor,
                                                   const Limits& limits);

}  // namespace simile::data
