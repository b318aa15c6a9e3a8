#include "base/utf8.h"

namespace simile::base {
namespace {

// The length of a sequence by its lead byte, and the range of its second byte, which excludes
// overlong forms, surrogates and values above U+10FFFF.
struct LeadByte {
  std::size_t length = 0;
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

LeadByte DescribeLead(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {.length = 2};
  if (lead == 0xE0) return {.length = 3, .second_min = 0xA0};
  if (lead == 0xED) return {.length = 3, .second_max = 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {.length = 3};
  if (lead == 0xF0) return {.length = 4, .second_min = 0x90};
  if (lead == 0xF4) return {.length = 4, .second_max = 0x8F};
  if (lead >= 0xF1 && lead <= 0xF3) return {.length = 4};
  return {};
}

}  // namespace

std::size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x80) return 1;
  const LeadByte lead = DescribeLead(byte(0));
  if (lead.length == 0 || text.size() < lead.length) return 0;
  if (byte(1) < lead.second_min || byte(1) > lead.second_max) return 0;
  for (std::size_t at = 2; at < lead.length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  return lead.length;
}

bool IsControl(std::string_view sequence) {
  const auto byte = [sequence](std::size_t at) { return static_cast<unsigned char>(sequence[at]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  return sequence.size() == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
}

std::uint32_t DecodeUtf8(std::string_view sequence) {
  const auto byte = [sequence](std::size_t at) -> std::uint32_t {
    return static_cast<unsigned char>(sequence[at]);
  };
  if (sequence.size() == 1) return byte(0);
  // The lead byte of a sequence of n bytes keeps its lowest 7 - n bits for the code point.
  std::uint32_t code = byte(0) & (0x7FU >> sequence.size());
  for (std::size_t at = 1; at < sequence.size(); ++at) code = code << 6 | (byte(at) & 0x3FU);
  return code;
}

bool IsInvisible(std::uint32_t code) {
  return code == 0xA0 || code == 0xAD || code == 0x1680 || (code >= 0x2000 && code <= 0x200B) ||
         code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202F) ||
         (code >= 0x205F && code <= 0x206F) || code == 0x3000 || code == 0xFEFF;
}

void AppendUtf8(std::string& text, std::uint32_t code) {
  const auto byte = [&text](std::uint32_t bits) { text += static_cast<char>(bits); };
  const auto continuation = [&](unsigned shift) { byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    continuation(6);
  } else {
    byte(0xF0 | code >> 18);
    continuation(12);
    continuation(6);
  }
  continuation(0);
}

}  // namespace simile::base
