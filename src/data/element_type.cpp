#include "data/element_type.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "base/fp16.h"

namespace simile::data {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

namespace {

inline float WidenBfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <typename Stored, typename Widen>
void DecodeAs(const char* bytes, std::span<double> values, Widen widen) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * sizeof stored, sizeof stored);
    values[i] = static_cast<double>(widen(stored));
  }
}

}  // namespace

std::size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kFloat32:
      return 4;
    case ElementType::kFloat64:
      return 8;
  }
  assert(false);
  return 8;
}

std::string_view ElementName(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  assert(false);
  return "";
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
