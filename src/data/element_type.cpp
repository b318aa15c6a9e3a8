#include "data/element_type.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "base/fp16.h"

namespace simile::data {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

namespace {

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

}  // namespace simile::data
