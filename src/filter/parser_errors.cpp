#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "filter/expression.h"
#include "filter/operators.h"
#include "filter/parser_state.h"

namespace simile::filter {

std::string Excerpt(std::string_view written) {
  constexpr std::size_t kCharactersMax = 40;
  std::string excerpt;
  for (std::size_t count = 0; !written.empty(); ++count) {
    const std::size_t length = base::Utf8SequenceLength(written);
    if (count == kCharactersMax || length == 0) return excerpt + "...";
    // Only a line break or a tab between tokens is a control character.
    const std::string_view character = written.substr(0, length);
    excerpt += base::IsControl(character) ? std::string_view(" ") : character;
    written.remove_prefix(length);
  }
  return excerpt;
}

std::string Excerpt(const Token& token) {
  return token.kind == Kind::kEnd ? "the end" : Excerpt(token.written);
}

namespace {

std::string CompareText(const Token& field, const Operator& comparison, const Token& value) {
  return ComparisonText(Excerpt(field), comparison, Excerpt(value));
}

// The text of a LIKE pattern, without the wildcards around it.
std::string PartText(const Token& value) {
  if (!IsValue(value)) return "\"text\"";
  std::string_view part = value.text;
  while (!part.empty() && (part.front() == '%' || part.front() == '*')) part.remove_prefix(1);
  while (!part.empty() && (part.back() == '%' || part.back() == '*')) part.remove_suffix(1);
  const bool cut = !part.empty() && part != value.text;
  return Excerpt(cut ? WriteQuoted(part) : value.written);
}

// Writes the operands, with parentheses around each run that `tight` joins.
std::string Reading(const std::vector<Operand>& operands, const std::vector<Kind>& joins,
                    std::size_t first, std::size_t last, Kind tight) {
  const auto name = [](Kind join) { return join == Kind::kAnd ? " AND " : " OR "; };
  std::string text;
  for (std::size_t at = first; at <= last; ++at) {
    const bool before = at > first && joins[at - 1] == tight;
    const bool after = at < last && joins[at] == tight;
    if (at > first) text += name(joins[at - 1]);
    if (after && !before) text += '(';
    text += operands[at].text;
    if (before && !after) text += ')';
  }
  return text;
}

}  // namespace

absl::Status MixedError(const std::vector<Operand>& operands, const std::vector<Kind>& joins,
                        const std::vector<std::uint32_t>& columns) {
  constexpr std::size_t kOperandsMax = 4;
  const auto other = std::find_if(joins.begin(), joins.end(),
                                  [&joins](Kind join) { return join != joins.front(); });
  const auto turn = static_cast<std::size_t>(other - joins.begin());
  const bool all = operands.size() <= kOperandsMax;
  const std::size_t first = all ? 0 : turn - 1;
  const std::size_t last = all ? operands.size() - 1 : turn + 1;
  return RefuseAt(
      columns[turn],
      fmt::format("AND and OR are mixed without parentheses, which people read "
                  "in two ways; write {}{}, or {}",
                  all ? "" : "for instance ", Reading(operands, joins, first, last, Kind::kAnd),
                  Reading(operands, joins, first, last, Kind::kOr)));
}

absl::Status Parser::Expected(std::string_view what, std::string_view hint) const {
  if (Next().kind == Kind::kBroken) return RefuseAt(Next().column, Next().text);
  return RefuseAt(Next().column,
                  fmt::format("expected {}, found {}{}", what, Excerpt(Next()), hint));
}

absl::Status Parser::UnclosedError(const Token& opened) const {
  return RefuseAt(opened.column, fmt::format("this {} is never closed", opened.written));
}

// Next() does not begin a condition.
absl::Status Parser::OperandError() const {
  const Token& found = Next();
  const bool first = at_ == 0;
  if (found.kind == Kind::kEnd && Last().kind == Kind::kOpenParenthesis) {
    return UnclosedError(Last());
  }
  if (found.kind == Kind::kCloseParenthesis && !first && Last().kind == Kind::kOpenParenthesis) {
    return RefuseAt(Last().column, "these parentheses are empty; expected a condition in them");
  }
  if (found.kind == Kind::kStar && first && Next(1).kind == Kind::kEnd) {
    return Expected("a condition", "; leave the filter out to ask for every item");
  }
  if (found.kind == Kind::kComparison || found.kind == Kind::kIn) {
    const bool again = found.kind == Kind::kComparison && last_field_ != nullptr &&
                       IsValue(Next(1)) && !first && Last().kind != Kind::kOpenParenthesis;
    return Expected(fmt::format("a field before {}", Excerpt(found)),
                    again ? "; write " + CompareText(*last_field_, *found.op, Next(1)) : "");
  }
  std::string_view hint;
  if (found.kind == Kind::kAnd || found.kind == Kind::kOr) {
    hint = first ? "; AND and OR join two conditions" : "";
  } else if (found.kind == Kind::kOpenBracket) {
    hint = "; a list goes only after IN";
  }
  return Expected(first ? "a condition such as year >= 1990"
                        : fmt::format("a condition after {}", Excerpt(Last())),
                  hint);
}

// A bare number where a field is expected: `1990 < year`, `1990 <= year <= 2000`, `OR 1991`.
absl::Status Parser::NumberError(const Token& number) const {
  const Token& field = Next(1);
  const bool compared = Next().kind == Kind::kComparison;
  if (compared && field.kind == Kind::kWord && !LooksLikeValue(field)) {
    std::string right = CompareText(field, Flipped(*Next().op), number);
    if (Next(2).kind == Kind::kComparison && IsValue(Next(3))) {
      right += " AND " + CompareText(field, *Next(2).op, Next(3));
    }
    return RefuseAt(number.column,
                    fmt::format("the field comes before the value; write {}", right));
  }
  if (Next().kind == Kind::kIn && field.kind == Kind::kWord && !LooksLikeValue(field)) {
    return RefuseAt(number.column, fmt::format("the field comes before the value; to ask what a "
                                               "list holds write {}:{}",
                                               Excerpt(field), Excerpt(number)));
  }
  if (compared || Next().kind == Kind::kIn || Next().kind == Kind::kNot) {
    return RefuseAt(number.column,
                    fmt::format("expected a field, found the number {}; a field with "
                                "such a name needs quotes: \"{}\"",
                                Excerpt(number), Excerpt(number)));
  }
  if (last_field_ != nullptr) return LoneError(number);
  return RefuseAt(number.column,
                  fmt::format("expected a field and a comparison such as year = 1990, found the "
                              "number {}",
                              Excerpt(number)));
}

absl::Status Parser::NegationError(const Token& word) const {
  const std::string_view rest = std::string_view(word.text).substr(1);
  if (rest.empty()) return RefuseAt(word.column, "- is no operator here; write NOT");
  return RefuseAt(word.column, fmt::format("- is no operator here; write NOT {}, or \"{}\" for a "
                                           "field of that name",
                                           Excerpt(rest), Excerpt(word)));
}

// A field without = or any other operator behind it.
absl::Status Parser::OperatorError(const Token& field) const {
  const Token& found = Next();
  switch (found.kind) {
    case Kind::kEnd:
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kCloseParenthesis:
      return LoneError(field);
    case Kind::kOpenParenthesis:
      return RefuseAt(
          field.column,
          fmt::format("there is no {}(...); there are has(field) and folded(field) = \"text\"",
                      Excerpt(field)));
    case Kind::kNot:
      return HabitError(field, "NOT ");
    default:
      return HabitError(field, "");
  }
}

// A field or a value without a comparison: `available`, or the 1991 of `year = 1990 OR 1991`.
absl::Status Parser::LoneError(const Token& field) const {
  const std::string name = Excerpt(field);
  if (last_field_ != nullptr && LooksLikeValue(field)) {
    return RefuseAt(field.column,
                    fmt::format("{} is compared with nothing; write {}", name,
                                CompareText(*last_field_, *last_comparison_->op, field)));
  }
  if (IsBare(field, "true") || IsBare(field, "false")) {
    return RefuseAt(field.column,
                    fmt::format("{0} is no condition by itself; write field = {0}", name));
  }
  return RefuseAt(field.column,
                  fmt::format("{0} is no condition by itself; write {0} = true or has({0})", name));
}

// The syntax of other languages after a field. Next() is that word, or a NOT before it.
absl::Status Parser::HabitError(const Token& field, std::string_view negation) const {
  const std::size_t skip = negation.empty() ? 0 : 1;
  const Token& word = Next(skip);
  const Token& value = Next(skip + 1);
  const std::string name = Excerpt(field);
  const auto error = [&](std::string_view fix) {
    return RefuseAt(word.column, fmt::format("{} is no operator here; write {}{}", Excerpt(word),
                                             negation, fix));
  };
  for (const Operator& each : Operators()) {
    if (std::ranges::any_of(each.wrong_words, [&](auto wrong) { return IsBare(word, wrong); })) {
      return error(ComparisonText(name, each, PartText(value)));
    }
  }
  if (IsBare(word, "between")) {
    const Token& high = Next(skip + 3);
    const bool whole = IsValue(value) && Next(skip + 2).kind == Kind::kAnd && IsValue(high);
    const std::string range =
        fmt::format("{0} >= {1} AND {0} <= {2}", name, whole ? Excerpt(value) : "1990",
                    whole ? Excerpt(high) : "1999");
    return error(negation.empty() ? range : '(' + range + ')');
  }
  const std::string operators =
      fmt::format("{} after {}", ListComparisons("or", [](const Operator&) { return true; }), name);
  if (!negation.empty()) {
    return Expected(operators, "; to negate a condition, write NOT before its field");
  }
  if (IsBare(word, "is")) return IsError(field);
  if (IsBare(field, "has") && IsValue(word)) {
    return RefuseAt(field.column, fmt::format("has takes its field in parentheses; write has({})",
                                              Excerpt(word)));
  }
  return Expected(operators, UnquotedFieldHint(field));
}

// `field IS NULL`, `field IS NOT NULL`, `field IS value`. Next() is the IS.
absl::Status Parser::IsError(const Token& field) const {
  const bool negated = Next(1).kind == Kind::kNot;
  const Token& value = Next(negated ? 2 : 1);
  const std::string name = Excerpt(field);
  std::string fix = fmt::format("has({0}), NOT has({0}) or {0} = value", name);
  if (IsBare(value, "null")) {
    fix = fmt::format("{}has({})", negated ? "" : "NOT ", name);
  } else if (IsValue(value)) {
    fix = CompareText(field, FindOperator(negated ? "!=" : "="), value);
  }
  return RefuseAt(Next().column,
                  fmt::format("{} is no operator here; write {}", Excerpt(Next()), fix));
}

// For `release year = 1990`: several words before an operator.
std::string Parser::UnquotedFieldHint(const Token& field) const {
  std::size_t words = 0;
  while (Next(words).kind == Kind::kWord) ++words;
  if (field.kind != Kind::kWord || words == 0 || Next(words).kind != Kind::kComparison) return "";
  return fmt::format("; a field of several words needs quotes: \"{}\"",
                     Excerpt(Between(field, Next(words - 1))));
}

absl::Status Parser::ValueError(const Token& field, const Token& comparison) const {
  const Token& found = Next();
  std::string hint;
  switch (found.kind) {
    case Kind::kOpenBracket:
    case Kind::kOpenParenthesis:
      hint = fmt::format("; for any of several values write {} IN [...]", Excerpt(field));
      break;
    case Kind::kStar:
      hint = fmt::format("; for any value write has({})", Excerpt(field));
      break;
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kNot:
    case Kind::kIn:
      hint = fmt::format("; a value of that name needs quotes: \"{}\"", Excerpt(found));
      break;
    case Kind::kComparison:  // year:>1990
      if (comparison.written == ":" && IsValue(Next(1))) {
        hint = "; write " + CompareText(field, *found.op, Next(1));
      }
      break;
    default:
      break;
  }
  return Expected(fmt::format("a value after {}", comparison.written), hint);
}

absl::Status Parser::NullError(const Token& field, const Token& comparison) const {
  const bool absent = !comparison.op->negated && !comparison.op->order();
  return RefuseAt(Next().column,
                  fmt::format("{0} is no value; write {1}has({2}), or \"{0}\" for that text",
                              Excerpt(Next()), absent ? "NOT " : "", Excerpt(field)));
}

// A second operator after a whole comparison. Next() is that operator.
absl::Status Parser::ChainError(const Token& field, const Token& comparison,
                                const Token& value) const {
  const Token& second = Next();
  if (IsCutByColon(value)) return ColonError(value);
  if (!IsValue(Next(1))) {
    return Expected("AND or OR between two comparisons");
  }
  const bool swapped = LooksLikeValue(field) && !LooksLikeValue(value);
  const Token& middle = swapped ? value : field;
  const std::string first = swapped ? CompareText(value, Flipped(*comparison.op), field)
                                    : CompareText(field, *comparison.op, value);
  return RefuseAt(second.column, fmt::format("comparisons do not chain; write {} AND {}", first,
                                             CompareText(middle, *second.op, Next(1))));
}

// A bare value with a colon in it, probably a time such as 2024-01-31T12:00:00Z.
absl::Status Parser::ColonError(const Token& value) const {
  return RefuseAt(value.column,
                  fmt::format("a value with a : in it needs quotes: \"{}\"", Run(value, value)));
}

absl::Status Parser::ListError(const Token& field, const Token& in) const {
  const Token& found = Next();
  const std::string after = fmt::format("[ after {}", in.written);
  const std::string_view negation = tokens_[at_ - 2].kind == Kind::kNot ? "NOT " : "";
  if (found.kind == Kind::kOpenParenthesis) {
    std::size_t length = 1;
    while (IsValue(Next(length)) || Next(length).kind == Kind::kComma) ++length;
    std::string items = "...";
    if (length > 1 && Next(length).kind == Kind::kCloseParenthesis) {
      items = Excerpt(Between(Next(1), Next(length - 1)));
    }
    return Expected(after, fmt::format("; write {} {}IN [{}]", Excerpt(field), negation, items));
  }
  if (!IsValue(found) || IsBare(found, "null")) return Expected(after);
  if (LooksLikeValue(field) && !LooksLikeValue(found)) {
    return Expected(after, fmt::format("; to ask what a list holds write {}{}:{}", negation,
                                       Excerpt(found), Excerpt(field)));
  }
  return Expected(after,
                  fmt::format("; write {} {}IN [{}]", Excerpt(field), negation, Excerpt(found)));
}

// Next() is not a value of an IN list.
absl::Status Parser::ItemError(const Token& open) const {
  const bool first = &Last() == &open;
  switch (Next().kind) {
    case Kind::kEnd:
      return UnclosedError(open);
    case Kind::kCloseBracket:
      return first ? RefuseAt(open.column, "this list is empty; expected a value in it")
                   : RefuseAt(Last().column, "this comma ends the list; expected a value after it");
    case Kind::kWord:  // null, the only word that is not a value
      return Expected("a value in the list", "; null is no value, write NOT has(field)");
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kNot:
    case Kind::kIn:
      return Expected("a value in the list",
                      fmt::format("; a value of that name needs quotes: \"{}\"", Excerpt(Next())));
    default:
      return Expected("a value in the list");
  }
}

// A hint about the tokens after a whole condition, where AND, OR or the end is expected.
std::string Parser::MissingJoinHint() const {
  const Token& found = Next();
  const bool bare = Last().kind == Kind::kWord;
  if (found.kind == Kind::kComma) {
    if (IsConditionAt(1)) return "; write AND or OR between two conditions";
    if (IsBareNumber(Last()) && IsBareNumber(Next(1))) return "; a decimal mark is written .";
    if (last_field_ == nullptr) return "";
    return fmt::format("; for any of several values write {} IN [...]", Excerpt(*last_field_));
  }
  if (found.kind == Kind::kStar) return "; : finds parts of a text without *";
  if (found.kind == Kind::kComparison) return "; a comparison has its field on the left";
  if (found.kind == Kind::kNot || IsCall("has") || IsCall("folded"))
    return "; write AND or OR before it";
  if (found.kind == Kind::kOpenParenthesis) {
    return bare ? "; write AND or OR before it, or quotes around a value with parentheses"
                : "; write AND or OR before it";
  }
  if (!IsValue(found)) return "";
  if (IsConditionAt(0)) return "; write AND or OR before it";
  if (Last().kind == Kind::kString && found.kind == Kind::kWord && Touch(Last(), found)) {
    return fmt::format("; a {0} inside the text is written \\{0}", Last().written.front());
  }
  if (bare && found.kind == Kind::kString && Touch(Last(), found)) {
    return fmt::format("; text with a {} in it needs quotes", found.written.front());
  }
  if (!bare || found.kind != Kind::kWord || IsBareNumber(Last())) return "";
  std::size_t words = 1;
  while (Next(words).kind == Kind::kWord && !IsConditionAt(words)) ++words;
  return fmt::format("; a value of several words needs quotes: \"{}\"",
                     Run(Last(), Next(words - 1)));
}

}  // namespace simile::filter
