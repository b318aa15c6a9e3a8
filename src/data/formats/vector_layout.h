#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "simile/limits.h"

namespace simile::data {

// The number types of vector files, little-endian.
enum class ElementType : std::uint8_t { kFloat16, kBfloat16, kFloat32, kFloat64 };

std::size_t ElementBytes(ElementType type);
// As NumPy calls it: "float16".
std::string_view ElementName(ElementType type);

// Widens little-endian elements to double, exactly; NaN and infinities are kept.
// REQUIRES: bytes.size() == values.size() * ElementBytes(type).
void DecodeElements(ElementType type, std::span<const char> bytes, std::span<double> values);

// The shape and type of a vector file, by its header; checked with the file's size.
struct VectorLayout {
  ElementType type = ElementType::kFloat32;
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;
  bool by_column = false;  // the numbers of a column are contiguous, not those of a row

  std::uint64_t row_bytes() const { return std::uint64_t{dim} * ElementBytes(type); }
  std::uint64_t bytes() const { return row_count * row_bytes(); }
};

// Makes the layout of a shape with two axes, both within bounds: the last step of each header
// reader. Errors: kInvalidArgument beginning with `display_name`.
absl::StatusOr<VectorLayout> MakeVectorLayout(std::string_view display_name, ElementType type,
                                              std::span<const std::uint64_t> shape,
                                              const Limits& limits);

// Adds a note where there are more dimensions than rows: `v.npy: more dimensions (500) than rows
// (32): if it is transposed, ...`. Only for vectors whose number of rows no other file gives.
void NoteTransposed(std::string_view display_name, const VectorLayout& layout,
                    std::vector<std::string>& notes);

// With fewer dimensions than this, dimensions >= rows is common and says nothing.
inline constexpr std::uint32_t kTransposedDimMin = 16;

// A shape as Python writes it: (5000, 384).
std::string ShapeText(std::span<const std::uint64_t> shape);

// What a load does with a row of zeros, which has no direction, where the metric is cosine. For dot
// it is a row like any other: it scores 0 with every vector.
enum class OnZeroRow : std::uint8_t {
  kRefuse,
  kSkip,  // keeps the row, which no search returns; see Dataset::skipped_rows
};

// What would be right instead of a row of zeros: the end of the error.
inline constexpr std::string_view kZeroRowAdvice =
    "a vector needs a direction; \"on_zero_row\": \"skip\" in collection.json leaves such rows out "
    "of every search";
inline constexpr std::string_view kZeroUserAdvice =
    "a preference needs a direction, and users are never skipped; leave the user out of this file "
    "and of the ids; a cold start answers users without a profile";

}  // namespace simile::data
