#include "data/formats/vector_format.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "data/formats/text_shape.h"

namespace simile::data {
namespace {

absl::StatusOr<VectorLayout> ReadNpy(BufferedReader& in, std::string_view /*tensor*/,
                                     const Limits& limits) {
  return ReadNpyHeader(in, limits);
}

// A .safetensors file begins with the length of its header in 8 bytes, and the header's JSON
// object. The limits leave the upper 4 bytes of the length 0.
bool BeginsSafetensors(std::string_view bytes) {
  constexpr std::string_view kHighBytes("\0\0\0\0", 4);
  return bytes.size() > 8 && bytes.substr(4, 4) == kHighBytes && bytes[8] == '{';
}

constexpr auto kFormats = std::to_array<VectorFormat>({
    {.ending = ".npy", .begins = BeginsNpy, .read_header = ReadNpy},
    {.ending = ".safetensors",
     .begins = BeginsSafetensors,
     .names_tensors = true,
     .read_header = ReadSafetensorsHeader},
});

// Refuses a file that begins like another format than its name says.
absl::Status CheckBegin(BufferedReader& in, const VectorFormat& format) {
  const absl::StatusOr<std::string_view> begin = in.Peek();
  if (!begin.ok()) return begin.status();
  if (format.begins(*begin)) return absl::OkStatus();
  if (absl::Status data = CheckHoldsData(in, ClassifyText(*begin)); !data.ok()) return data;
  for (const VectorFormat& other : kFormats) {
    if (!other.begins(*begin)) continue;
    const std::string_view name = in.display_name();
    return Refuse(in,
                  fmt::format("looks like a {} file; rename it to {}{}", other.ending,
                              name.substr(0, name.size() - format.ending.size()), other.ending));
  }
  return absl::OkStatus();
}

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
    if (absl::Status begin = CheckBegin(in, *format); !begin.ok()) return begin;
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
