#include "data/formats/vector_layout.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "base/fp16.h"
#include "base/message_text.h"

namespace simile::data {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

namespace {

constexpr std::string_view kIfTransposed =
    "if it is transposed, save the array's transpose, array.T";

struct Stored {
  std::size_t bytes;
  std::string_view name;
};
// By ElementType.
constexpr std::array<Stored, 4> kTypes = {
    {{2, "float16"}, {2, "bfloat16"}, {4, "float32"}, {8, "float64"}}};
static_assert(kTypes.size() == static_cast<std::size_t>(ElementType::kFloat64) + 1);

float WidenBfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <typename Number, typename Widen>
void DecodeAs(const char* bytes, std::span<double> values, Widen widen) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number stored;
    std::memcpy(&stored, bytes + i * sizeof stored, sizeof stored);
    values[i] = static_cast<double>(widen(stored));
  }
}

}  // namespace

std::size_t ElementBytes(ElementType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

std::string_view ElementName(ElementType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

void DecodeElements(ElementType type, std::span<const char> bytes, std::span<double> values) {
  assert(bytes.size() == values.size() * ElementBytes(type));
  switch (type) {
    case ElementType::kFloat16:
      return DecodeAs<std::uint16_t>(bytes.data(), values, base::FloatFromFp16);
    case ElementType::kBfloat16:
      return DecodeAs<std::uint16_t>(bytes.data(), values, WidenBfloat);
    case ElementType::kFloat32:
      return DecodeAs<float>(bytes.data(), values, [](float value) { return value; });
    case ElementType::kFloat64:
      return DecodeAs<double>(bytes.data(), values, [](double value) { return value; });
  }
}

absl::StatusOr<VectorLayout> MakeVectorLayout(std::string_view display_name, ElementType type,
                                              std::span<const std::uint64_t> shape,
                                              const Limits& limits) {
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
