#pragma once

#include <algorithm>
#include <string_view>

namespace simile::base {

// Bytes beyond ASCII stay as they are.
constexpr char LowerAscii(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

// Whether two texts differ in the case of ASCII letters at most.
constexpr bool EqualsIgnoringCase(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, LowerAscii, LowerAscii);
}

}  // namespace simile::base
