#include "data/vector_format.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "data/npy_header.h"
#include "data/safetensors_header.h"

namespace simile::data {
namespace {

absl::StatusOr<VectorLayout> ReadNpy(BufferedReader& in, std::string_view /*tensor*/,
                                     const Limits& limits) {
  return ReadNpyHeader(in, limits);
}

constexpr auto kFormats = std::to_array<VectorFormat>({
    {.ending = ".npy", .read_header = ReadNpy},
    {.ending = ".safetensors", .names_tensors = true, .read_header = ReadSafetensorsHeader},
});

}  // namespace

std::span<const VectorFormat> VectorFormats() { return kFormats; }

const VectorFormat* FindVectorFormat(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kFormats, [name](std::string_view ending) { return name.ends_with(ending); },
      &VectorFormat::ending);
  return found == kFormats.end() ? nullptr : found;
}

absl::StatusOr<VectorLayout> ReadVectorLayout(BufferedReader& in, std::string_view tensor,
                                              const Limits& limits) {
  if (const VectorFormat* const format = FindVectorFormat(in.display_name())) {
    return format->read_header(in, tensor, limits);
  }
  std::string endings;
  for (const VectorFormat& format : kFormats) {
    if (!endings.empty()) endings += " and ";
    endings += format.ending;
  }
  return Refuse(in, fmt::format("vectors are read from {} files", endings));
}

}  // namespace simile::data
