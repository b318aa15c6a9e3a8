#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <utf8proc.h>

#include "base/utf8.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

bool IsSpaceCodepoint(utf8proc_int32_t codepoint) {
  if (codepoint >= '\t' && codepoint <= '\r') return true;
  switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return codepoint == 0x85;  // next line
  }
}

// Collects folded characters with one space for each run of white space between them.
class Folded {
 public:
  void AddSpace() { space_pending_ = !text_.empty(); }
  void Add(std::string_view character) {
    if (space_pending_) text_ += ' ';
    space_pending_ = false;
    text_ += character;
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
  bool space_pending_ = false;
};

// The result of FoldText for pure ASCII, without the cost of decomposition: most texts are ASCII.
std::string FoldAscii(std::string_view text) {
  Folded folded;
  for (const char byte : text) {
    if (IsSpaceCodepoint(byte)) {
      folded.AddSpace();
      continue;
    }
    const char lower = base::LowerAscii(byte);
    folded.Add({&lower, 1});
  }
  return std::move(folded).text();
}

// Decomposed by compatibility, case folded, invisible characters dropped, and typographic variants
// of ASCII punctuation made plain. Empty when the text is not UTF-8.
//   extra  UTF8PROC_STRIPMARK to drop marks, or 0
std::vector<utf8proc_int32_t> Decompose(std::string_view text, int extra) {
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE |
                                     UTF8PROC_CASEFOLD | UTF8PROC_IGNORE | UTF8PROC_LUMP | extra);
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto length = static_cast<utf8proc_ssize_t>(text.size());
  // Most texts shrink or keep their length; one code point may decompose into as many as 18.
  std::vector<utf8proc_int32_t> codepoints(text.size());
  for (;;) {
    const utf8proc_ssize_t count =
        utf8proc_decompose(bytes, length, codepoints.data(),
                           static_cast<utf8proc_ssize_t>(codepoints.size()), options);
    if (count < 0) return {};
    const bool fitted = static_cast<std::size_t>(count) <= codepoints.size();
    codepoints.resize(static_cast<std::size_t>(count));
    if (fitted) return codepoints;
  }
}

bool IsMark(utf8proc_int32_t codepoint) {
  switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return true;
    default:
      return false;
  }
}

// Whether a decomposed letter is in the blocks of Latin and Greek.
bool IsLatinOrGreek(utf8proc_int32_t codepoint) {
  struct Block {
    utf8proc_int32_t first;
    utf8proc_int32_t last;
  };
  constexpr std::array<Block, 8> kBlocks = {{{'A', 'Z'},
                                             {'a', 'z'},
                                             {0xC0, 0x2AF},
                                             {0x370, 0x3FF},
                                             {0x1E00, 0x1FFF},
                                             {0x2C60, 0x2C7F},
                                             {0xA720, 0xA7FF},
                                             {0xAB30, 0xAB6F}}};
  return std::ranges::any_of(kBlocks, [codepoint](const Block& block) {
    return block.first <= codepoint && codepoint <= block.last;
  });
}

// Drops the marks that follow Latin and Greek letters.
std::vector<utf8proc_int32_t> WithoutAccents(std::vector<utf8proc_int32_t> codepoints) {
  bool is_accented = false;
  std::erase_if(codepoints, [&](utf8proc_int32_t codepoint) {
    if (IsMark(codepoint)) return is_accented;
    is_accented = IsLatinOrGreek(codepoint);
    return false;
  });
  return codepoints;
}

std::string EncodeFolded(const std::vector<utf8proc_int32_t>& codepoints) {
  Folded folded;
  for (const utf8proc_int32_t codepoint : codepoints) {
    if (IsSpaceCodepoint(codepoint)) {
      folded.AddSpace();
      continue;
    }
    std::array<utf8proc_uint8_t, 4> bytes{};
    const utf8proc_ssize_t count = utf8proc_encode_char(codepoint, bytes.data());
    folded.Add({reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count)});
  }
  return std::move(folded).text();
}

// The form of a text that EqualFolded compares.
std::string FoldAccents(std::string_view text) {
  if (IsAscii(text)) return FoldAscii(text);
  return EncodeFolded(WithoutAccents(Decompose(text, 0)));
}

}  // namespace

std::string FoldText(std::string_view text) {
  if (IsAscii(text)) return FoldAscii(text);
  return EncodeFolded(Decompose(text, UTF8PROC_STRIPMARK));
}

bool EqualFolded(std::string_view a, std::string_view b) {
  return FoldAccents(a) == FoldAccents(b);
}

}  // namespace simile::filter
