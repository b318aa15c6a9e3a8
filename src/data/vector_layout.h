#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/element_type.h"
#include "simile/limits.h"

namespace simile::data {

// What a vector file's header says, checked against the file's size.
struct VectorLayout {
  ElementType type = ElementType::kFloat32;
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;

  std::uint64_t row_bytes() const { return std::uint64_t{dim} * ElementBytes(type); }
  std::uint64_t bytes() const { return row_count * row_bytes(); }
};

// Reads the header of a .npy or .safetensors file, told apart by the name, and leaves the reader at
// the first row.
//   tensor  which tensor of a .safetensors file; empty: its only one
// Errors: kInvalidArgument beginning with the file's name.
absl::StatusOr<VectorLayout> ReadVectorLayout(BufferedReader& in, std::string_view tensor,
                                              const Limits& limits);

// Whether ReadVectorLayout knows the ending of this file name.
bool IsVectorFileName(std::string_view name);

// The two headers' common last step: two axes, both within bounds.
// Errors: kInvalidArgument beginning with `shown`.
absl::StatusOr<VectorLayout> LayoutOf(std::string_view shown, ElementType type,
                                      std::span<const std::uint64_t> shape, const Limits& limits);

// A shape as Python writes it: (5000, 384).
std::string ShownShape(std::span<const std::uint64_t> shape);

}  // namespace simile::data
