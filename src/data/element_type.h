#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simile::data {

// The numbers a vector file may hold, little-endian.
enum class ElementType : std::uint8_t { kFloat16, kBfloat16, kFloat32, kFloat64 };

std::size_t ElementBytes(ElementType type);
// As NumPy calls it: "float16".
std::string_view ElementName(ElementType type);

// Widens little-endian elements to double, exactly; NaN and infinities stay what they are.
// REQUIRES: bytes.size() == values.size() * ElementBytes(type).
void DecodeElements(ElementType type, std::span<const char> bytes, std::span<double> values);

// IEEE binary16 to binary32, exact for every bit pattern, subnormals included.
float FloatFromHalf(std::uint16_t half);

}  // namespace simile::data
