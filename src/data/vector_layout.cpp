#include "data/vector_layout.h"

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

constexpr std::string_view kIfTransposed =
    "if it is transposed, save the array's transpose, array.T";

}  // namespace

absl::StatusOr<VectorLayout> LayoutOf(std::string_view display_name, ElementType type,
                                      std::span<const std::uint64_t> shape, const Limits& limits) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("{}: shape {} {}", display_name, ShapeText(shape), why));
  };
  if (shape.size() != 2) {
    return refuse(fmt::format(
        "has {}; vectors need 2: (rows, dimensions)",
        shape.size() == 1 ? std::string("1 axis") : fmt::format("{} axes", shape.size())));
  }
  if (shape[0] == 0) return refuse("holds no rows; at least 1 is needed");
  if (shape[1] == 0) return refuse("holds no dimensions; at least 1 is needed");
  if (shape[0] > limits.rows_max) {
    return refuse(fmt::format("holds more than the {} rows a collection may have",
                              base::Grouped(limits.rows_max)));
  }
  if (shape[1] > limits.dim_max) {
    const bool may_be_transposed = shape[0] <= limits.dim_max;
    return refuse(fmt::format(
        "holds more than the {} dimensions a vector may have; reduce them, by PCA for example, or "
        "keep the first ones where the model allows it (Matryoshka){}",
        base::Grouped(limits.dim_max),
        may_be_transposed ? fmt::format("; {}", kIfTransposed) : std::string()));
  }
  return VectorLayout{
      .type = type, .row_count = shape[0], .dim = static_cast<std::uint32_t>(shape[1])};
}

void NoteTransposed(std::string_view display_name, const VectorLayout& layout,
                    std::vector<std::string>& notes) {
  if (layout.dim < kTransposedDimMin || layout.dim <= layout.row_count) return;
  notes.push_back(fmt::format("{}: more dimensions ({}) than rows ({}): {}", display_name,
                              base::Grouped(layout.dim), base::Grouped(layout.row_count),
                              kIfTransposed));
}

std::string ShapeText(std::span<const std::uint64_t> shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace simile::data
