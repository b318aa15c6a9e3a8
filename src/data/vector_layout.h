#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "data/element_type.h"
#include "simile/limits.h"

namespace simile::data {

// The shape and type of a vector file, by its header; checked with the file's size.
struct VectorLayout {
  ElementType type = ElementType::kFloat32;
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;
  bool by_column = false;  // the numbers of a column are contiguous, not those of a row

  std::uint64_t row_bytes() const { return std::uint64_t{dim} * ElementBytes(type); }
  std::uint64_t bytes() const { return row_count * row_bytes(); }
};

// The last step of every header reader: two axes, both within bounds.
// Errors: kInvalidArgument beginning with `display_name`.
absl::StatusOr<VectorLayout> LayoutOf(std::string_view display_name, ElementType type,
                                      std::span<const std::uint64_t> shape, const Limits& limits);

// Adds a note where there are more dimensions than rows: `v.npy: more dimensions (500) than rows
// (32): if it is transposed, ...`. Only for vectors whose number of rows no other file gives.
void NoteTransposed(std::string_view display_name, const VectorLayout& layout,
                    std::vector<std::string>& notes);

// With fewer dimensions than this, dimensions >= rows is common and says nothing.
inline constexpr std::uint32_t kTransposedDimMin = 16;

// A shape as Python writes it: (5000, 384).
std::string ShapeText(std::span<const std::uint64_t> shape);

}  // namespace simile::data
