#include "data/vector_layout.h"

#include <fmt/format.h>

#include "data/npy_header.h"
#include "data/safetensors_header.h"
#include "data/wording.h"

namespace simile::data {
namespace {

constexpr std::string_view kNpyEnding = ".npy";
constexpr std::string_view kSafetensorsEnding = ".safetensors";

}  // namespace

bool IsVectorFileName(std::string_view name) {
  return name.ends_with(kNpyEnding) || name.ends_with(kSafetensorsEnding);
}

absl::StatusOr<VectorLayout> ReadVectorLayout(BufferedReader& in, std::string_view tensor,
                                              const Limits& limits) {
  if (in.shown().ends_with(kNpyEnding)) return ReadNpyHeader(in, limits);
  if (in.shown().ends_with(kSafetensorsEnding)) return ReadSafetensorsHeader(in, tensor, limits);
  return absl::InvalidArgumentError(
      fmt::format("{}: vectors are read from .npy and .safetensors files", in.shown()));
}

absl::StatusOr<VectorLayout> LayoutOf(std::string_view shown, ElementType type,
                                      std::span<const std::uint64_t> shape, const Limits& limits) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("{}: shape {} {}", shown, ShownShape(shape), why));
  };
  if (shape.size() != 2) {
    return refuse(fmt::format(
        "has {}; vectors need 2: (rows, dimensions)",
        shape.size() == 1 ? std::string("1 axis") : fmt::format("{} axes", shape.size())));
  }
  if (shape[0] == 0) return refuse("holds no rows; at least 1 is needed");
  if (shape[1] == 0) return refuse("holds no dimensions; at least 1 is needed");
  if (shape[0] > limits.rows_max) {
    return refuse(
        fmt::format("holds more than the {} rows a collection may have", Grouped(limits.rows_max)));
  }
  if (shape[1] > limits.dim_max) {
    return refuse(fmt::format("holds more than the {} dimensions a vector may have",
                              Grouped(limits.dim_max)));
  }
  return VectorLayout{
      .type = type, .row_count = shape[0], .dim = static_cast<std::uint32_t>(shape[1])};
}

std::string ShownShape(std::span<const std::uint64_t> shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace simile::data
