#include "integration/near_texts.h"

#include <array>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"
#include "certificate/seeded_random.h"

namespace simile::integration {
namespace {

using tests::SeededRandom;

constexpr std::array kWords = {"acme", "north", "Harbour", "lumen", "delta-shop", "Quay Street"};

// Pairs that stay as they are: no number makes them different from all other pairs.
const NearTexts kWhole[] = {
    {"empty", "", " "},
    {"empty", "\u00a0", "\t"},
    {"empty", "\u200b", "\u00ad"},
    {"numbers", "2", "\u00b2"},
    {"numbers", "2.0", "2"},
    {"numbers", "0", "-0"},
    {"numbers", "1000", "1e3"},
    {"bars", "|", "||"},
    {"bars", "acme|labs", "labs|acme"},
    {"case", "true", "True"},
    {"case", "null", "NULL"},
    {"times", "2024-05-31", "2024-05-31T00:00:00Z"},
    {"times", "2024-05-31T00:00:00+00:00", "2024-05-31T02:00:00+02:00"},
    {"quotes", "\"acme\"", "acme"},
    {"quotes", "a\\nb", "a\nb"},
};

// A number is put behind both.
struct TwoSpellings {
  const char* name;
  const char* a;
  const char* b;
};
constexpr TwoSpellings kMarks[] = {
    {"Latin", "muller", "m\u00fcller"},
    {"Greek", "\u03bb\u03bf\u03b3\u03bf\u03c2", "\u03bb\u03cc\u03b3\u03bf\u03c2"},
    {"Cyrillic", "\u043c\u043e\u0438", "\u043c\u043e\u0439"},
    {"Hebrew", "\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd"},
    {"Arabic", "\u0643\u062a\u0628", "\u0643\u064f\u062a\u064f\u0628"},
    {"Devanagari", "\u0915\u0932", "\u0915\u0941\u0932"},
    {"Bengali", "\u0995\u09b2", "\u0995\u09c1\u09b2"},
    {"Tamil", "\u0b95\u0bb2", "\u0b95\u0bcd\u0bb2"},
    {"Telugu", "\u0c15\u0c32", "\u0c15\u0c3f\u0c32"},
    {"Thai", "\u0e21\u0e32", "\u0e21\u0e49\u0e32"},
    {"Khmer", "\u1780\u179a", "\u1780\u17b7\u179a"},
    {"Myanmar", "\u1000\u101c", "\u1000\u102d\u101c"},
    {"Tibetan", "\u0f56\u0f51", "\u0f56\u0f7c\u0f51"},
    {"kana", "\u304b\u304d", "\u304b\u304e"},
};
constexpr TwoSpellings kForms[] = {
    {"e acute", "caf\u00e9", "cafe\u0301"},
    {"iota with two marks", "\u0390", "\u03b9\u0308\u0301"},
    {"short i", "\u043c\u043e\u0439", "\u043c\u043e\u0438\u0306"},
    {"Hangul", "\uac01", "\u1100\u1161\u11a8"},
    {"kana", "\u304c", "\u304b\u3099"},
    {"a with two marks", "\u1ead", "a\u0323\u0302"},
    {"order of marks", "o\u0323\u0302", "o\u0302\u0323"},
    {"Devanagari qa", "\u0915\u093c", "\u0958"},
    {"Bengali o", "\u09cb", "\u09c7\u09be"},
    {"Tamil o", "\u0bca", "\u0bc6\u0bbe"},
    {"alef with madda", "\u0622", "\u0627\u0653"},
    {"shin with dot", "\ufb2a", "\u05e9\u05c1"},
    {"Angstrom sign", "\u212b", "\u00c5"},
    {"kelvin sign", "\u212a", "K"},
};
constexpr TwoSpellings kCases[] = {
    {"sharp s", "stra\u00dfe", "STRASSE"},
    {"final sigma", "\u03bd\u03cc\u03bc\u03bf\u03c2", "\u039d\u038c\u039c\u039f\u03a3"},
    {"Cyrillic", "\u0434\u043e\u043c", "\u0414\u041e\u041c"},
    {"Armenian", "\u0562\u0561\u0580", "\u0532\u0531\u0550"},
    {"dotless i", "\u0131zmir", "izmir"},
    {"dotted I", "\u0130zmir", "izmir "},
    {"Deseret", "\U00010428", "\U00010400"},
    {"Cherokee", "\uab70", "\u13a0"},
    {"long s", "\u017fun", "sun"},
};
constexpr TwoSpellings kWidths[] = {
    {"kana", "\u30ab\u30bf\u30ab\u30ca", "\uff76\uff80\uff76\uff85"},
    {"kana with mark", "\u30ac", "\uff76\uff9e"},
    {"Hangul", "\u3131", "\uffa1"},
};
constexpr TwoSpellings kSigns[] = {
    {"apostrophe", "o'hara", "o\u2019hara"},
    {"dash", "a-b", "a\u2013b"},
    {"minus", "-5", "\u22125"},
    {"ligature", "\ufb01sh", "fish"},
    {"ellipsis", "and...", "and\u2026"},
    {"trade mark", "acme\u2122", "acmetm"},
    {"fraction", "\u00bd", "1\u20442"},
    {"look-alike a", "pay", "p\u0430y"},
    {"look-alike O", "OK", "\u039fK"},
    {"zero and O", "R0", "RO"},
};
constexpr std::array kSpaces = {"  ", "\t", "\n", "\u00a0", "\u2009", "\u3000", "\u2028", "_"};
constexpr std::array kInvisible = {"\u200b", "\u200c", "\u200d", "\u00ad", "\u200e", "\ufeff",
                                   "\u2060", "\ufe0f", "\u034f", "\u2063", "\u180e", "\u061c"};

struct TwoTexts {
  std::string a;
  std::string b;
  std::string kind = {};
};

TwoTexts FromTable(std::string_view kind, const TwoSpellings& spellings, std::size_t number) {
  return {fmt::format("{}-{}", spellings.a, number), fmt::format("{}-{}", spellings.b, number),
          fmt::format("{}, {}", kind, spellings.name)};
}

const TwoSpellings& AnySpellings(std::span<const TwoSpellings> table, SeededRandom& random) {
  return table[random.Below(table.size())];
}

std::string AnyWord(SeededRandom& random) { return kWords[random.Below(kWords.size())]; }

// ASCII in its full-width forms; a space is U+3000.
std::string FullWidth(std::string_view text) {
  std::string wide;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    base::AppendUtf8(wide, code == ' ' ? 0x3000U : code + 0xfee0U);
  }
  return wide;
}

TwoTexts DrawCase(SeededRandom& random, std::size_t number) {
  if (random.OneIn(2)) return FromTable("case", AnySpellings(kCases, random), number);
  const std::string text = fmt::format("{}-{}", AnyWord(random), number);
  std::string other = text;
  const std::size_t changed = random.Below(3);  // a letter of the word
  other[changed] = static_cast<char>(other[changed] ^ 0x20);
  return {text, other};
}

TwoTexts DrawWidth(SeededRandom& random, std::size_t number) {
  if (random.OneIn(3)) return FromTable("width", AnySpellings(kWidths, random), number);
  const std::string text = fmt::format("{}-{}", AnyWord(random), number);
  const std::size_t wide = random.Between(1, text.size());
  return {text, FullWidth(text.substr(0, wide)) + text.substr(wide)};
}

TwoTexts DrawMarks(SeededRandom&, std::size_t number) {
  return FromTable("marks", kMarks[number % std::size(kMarks)], number);
}

TwoTexts DrawForms(SeededRandom&, std::size_t number) {
  return FromTable("NFC and NFD", kForms[number % std::size(kForms)], number);
}

TwoTexts DrawSpaces(SeededRandom& random, std::size_t number) {
  const std::string word = AnyWord(random);
  const std::string text = fmt::format("{} {}", word, number);
  const char* const space = kSpaces[random.Below(kSpaces.size())];
  switch (random.Below(4)) {
    case 0:
      return {text, space + text};
    case 1:
      return {text, text + space};
    case 2:
      return {text, ' ' + text + ' '};
    default:
      return {text, fmt::format("{}{}{}", word, space, number)};
  }
}

TwoTexts DrawInvisible(SeededRandom& random, std::size_t number) {
  const std::string text = fmt::format("{}-{}", AnyWord(random), number);
  std::string other = text;
  other.insert(random.Below(text.size() + 1), kInvisible[random.Below(kInvisible.size())]);
  return {text, other};
}

TwoTexts DrawBars(SeededRandom& random, std::size_t number) {
  const std::string text = fmt::format("{}-{}", AnyWord(random), number);
  const char* const others[] = {"{}|labs", "labs|{}", "{}|", "|{}", "labs | {}", "{}|{}"};
  return {text, fmt::format(fmt::runtime(others[random.Below(std::size(others))]), text, text)};
}

TwoTexts DrawPrefix(SeededRandom& random, std::size_t number) {
  const std::string text = fmt::format("{}-{}", AnyWord(random), number);
  const char* const others[] = {"{}-eu", "x{}", "{}.", "({})", "{}\u0301", "{}*"};
  return {text, fmt::format(fmt::runtime(others[random.Below(std::size(others))]), text)};
}

TwoTexts DrawNumbers(SeededRandom& random, std::size_t number) {
  constexpr std::array kSuperscripts = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                        "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  const std::string text = std::to_string(1'000 + number);
  std::string raised;
  std::string arabic;
  for (const char digit : text) {
    raised += kSuperscripts[static_cast<std::size_t>(digit - '0')];
    base::AppendUtf8(arabic, 0x660U + static_cast<unsigned char>(digit - '0'));
  }
  const std::string others[] = {
      raised,     arabic,          text + ".0", text + "e0",
      '0' + text, FullWidth(text), '+' + text,  text.substr(0, 1) + "," + text.substr(1)};
  return {text, others[random.Below(std::size(others))]};
}

TwoTexts DrawSigns(SeededRandom& random, std::size_t number) {
  return FromTable("signs", AnySpellings(kSigns, random), number);
}

struct DrawnKind {
  const char* name;
  TwoTexts (*draw)(SeededRandom& random, std::size_t number);
};
constexpr DrawnKind kKinds[] = {
    {"case", DrawCase},           {"width", DrawWidth},   {"marks", DrawMarks},
    {"NFC and NFD", DrawForms},   {"spaces", DrawSpaces}, {"marks", DrawMarks},
    {"invisible", DrawInvisible}, {"bars", DrawBars},     {"prefixes", DrawPrefix},
    {"numbers", DrawNumbers},     {"signs", DrawSigns}};

}  // namespace

std::vector<NearTexts> DrawNearTexts(std::size_t count, std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<NearTexts> pairs(std::begin(kWhole), std::end(kWhole));
  for (std::size_t number = 0; pairs.size() < count; ++number) {
    const DrawnKind& kind = kKinds[number % std::size(kKinds)];
    TwoTexts drawn = kind.draw(random, number);
    pairs.push_back({drawn.kind.empty() ? kind.name : drawn.kind, drawn.a, drawn.b});
  }
  pairs.resize(count);
  return pairs;
}

}  // namespace simile::integration
