#include "filter/operators.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace simile::filter {
namespace {

using data::FieldType;
using Kind = Token::Kind;

constexpr Sides kEqual{.equal = true};

constexpr auto kOperators = std::to_array<Operator>({
    {.symbol = "=",
     .wrong_signs = {"==", "===", ":=", "= ="},
     .sides = kEqual,
     .keyword = KeywordTest::kEqual,
     .keywords = KeywordTest::kEqual},
    {.symbol = "!=",
     .wrong_signs = {"!==", "=!", "<>", "! =", "< >", "\u2260"},
     .negated = true,
     .sides = kEqual,
     .keyword = KeywordTest::kEqual,
     .keywords = KeywordTest::kEqual},
    {.symbol = "<", .sides = {.below = true}},
    {.symbol = "<=",
     .wrong_signs = {"=<", "< =", "\u2264"},
     .sides = {.below = true, .equal = true}},
    {.symbol = ">", .sides = {.above = true}},
    {.symbol = ">=",
     .wrong_signs = {"=>", "> =", "\u2265"},
     .sides = {.equal = true, .above = true}},
    {.symbol = ":",
     .wrong_signs = {"=~", "~"},
     .wrong_words = {"like", "ilike", "contains"},
     .spaced = false,
     .keyword = KeywordTest::kPart,
     .keywords = KeywordTest::kFolded,
     .asks = "what a text or a list contains",
     .empty_text = "is contained in everything"},
    {.symbol = "AND", .kind = Kind::kAnd, .wrong_signs = {"&&", "&"}},
    {.symbol = "OR", .kind = Kind::kOr, .wrong_signs = {"||", "|"}},
    {.symbol = "NOT", .kind = Kind::kNot, .wrong_signs = {"!"}},
    {.symbol = "IN", .kind = Kind::kIn},
});

}  // namespace

bool Operator::IsFor(FieldType type) const {
  switch (type) {
    case FieldType::kKeyword:
      return keyword != KeywordTest::kNone;
    case FieldType::kKeywords:
      return keywords != KeywordTest::kNone;
    case FieldType::kInteger:
    case FieldType::kNumber:
    case FieldType::kTime:
      return sides.equal || order();
    case FieldType::kIntegers:
    case FieldType::kNumbers:
      return element_sides() != Sides{};
    case FieldType::kBoolean:
      return equality();
    case FieldType::kBooleans:
      return element_sides() == kEqual;
    case FieldType::kOther:
      return false;
  }
  return false;
}

std::span<const Operator> Operators() { return kOperators; }

const Operator& FindOperator(std::string_view symbol) {
  const auto* const found = std::ranges::find(kOperators, symbol, &Operator::symbol);
  assert(found != kOperators.end());
  return *found;
}

const Operator& Flipped(const Operator& comparison) {
  const Sides sides = comparison.sides;
  const auto* const found = std::ranges::find_if(kOperators, [sides](const Operator& each) {
    return each.order() && each.sides == Sides{sides.above, sides.equal, sides.below};
  });
  return found == kOperators.end() ? comparison : *found;
}

std::string ComparisonText(std::string_view field, const Operator& comparison,
                           std::string_view value) {
  const std::string_view space = comparison.spaced ? " " : "";
  return fmt::format("{}{}{}{}{}", field, space, comparison.symbol, space, value);
}

std::string ListComparisons(std::string_view conjunction,
                            absl::FunctionRef<bool(const Operator&)> includes) {
  std::string list;
  for (const Operator& each : kOperators) {
    if (each.kind != Kind::kComparison || !includes(each)) continue;
    list += list.empty() ? "" : ", ";
    list += each.symbol;
  }
  return fmt::format("{} {} IN", list, conjunction);
}

}  // namespace simile::filter
