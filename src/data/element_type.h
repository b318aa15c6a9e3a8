#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simile::data {

// The number types of vector files, little-endian.
enum class ElementType : std::uint8_t { kFloat16, kBfloat16, kFloat32, kFloat64 };

std::size_t ElementBytes(ElementType type);
// As NumPy calls it: "float16".
std::string_view ElementName(ElementType type);

// Widens little-endian elements to double, exactly; NaN and infinities are kept.
// REQUIRES: bytes.size() == values.size() * ElementBytes(type).
void DecodeElements(ElementType type, std::span<const char> bytes, std::span<double> values);

}  // namespace simile::data
