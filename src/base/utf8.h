#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simile::base {

// The length, 1 to 4, of the UTF-8 sequence that text begins with, or 0 when it begins with none.
// Strict (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
std::size_t Utf8SequenceLength(std::string_view text);

// Whether a valid sequence is a control character: U+0000..U+001F, U+007F..U+009F.
bool IsControl(std::string_view sequence);

// The code point of a sequence. REQUIRES: the sequence is valid.
std::uint32_t DecodeUtf8(std::string_view sequence);

// Whether a code point is an invisible character or an unusual space. Such characters arrive by
// pasting, and make words differ that look alike. The joiners U+200C and U+200D do not count,
// because words of some scripts need them.
bool IsInvisible(std::uint32_t code);

// Appends a code point. REQUIRES: at most U+10FFFF and no surrogate.
void AppendUtf8(std::string& text, std::uint32_t code);

// Bytes beyond ASCII stay as they are.
constexpr char LowerAscii(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

// Whether two texts differ in the case of ASCII letters at most.
constexpr bool EqualsIgnoringCase(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, LowerAscii, LowerAscii);
}

}  // namespace simile::base
