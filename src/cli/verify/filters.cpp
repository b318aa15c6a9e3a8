#include "cli/verify/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cli/verify/sample.h"

namespace simile::cli {
namespace {

static_assert(std::numeric_limits<WideNumber>::digits >= 64);

constexpr auto kNumberComparisons = std::to_array<NumberComparison>({
    {.symbol = "=", .equal = true},
    {.symbol = "!=", .below = true, .above = true},
    {.symbol = "<", .below = true},
    {.symbol = "<=", .below = true, .equal = true},
    {.symbol = ">", .above = true},
    {.symbol = ">=", .equal = true, .above = true},
});

bool IsMissing(const PayloadValue& value) {
  return std::holds_alternative<std::monostate>(value.value);
}

// The elements of a list of texts; null for any other value.
const PayloadList* TextList(const PayloadValue& value) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  if (list == nullptr) return nullptr;
  const bool texts = std::ranges::all_of(*list, [](const PayloadValue& element) {
    return std::holds_alternative<std::string>(element.value);
  });
  return texts ? list : nullptr;
}

Passing YesOrNo(bool passes) { return passes ? Passing::kYes : Passing::kNo; }

// How many rows are drawn in search of a value before a field counts as too sparse.
constexpr int kDrawsMax = 32;
// The most bytes of a text in a condition, and of all its ids. A filter has at most 8,192 bytes.
constexpr std::size_t kTextBytesMax = 256;
constexpr std::size_t kIdBytesMax = 2'000;
// How many rows a condition with `:` is restricted to.
constexpr std::size_t kHasRows = 12;

using Field = v1::PayloadField;

std::vector<const Field*> FindFields(const SampleDraw& draw,
                                     std::initializer_list<v1::FieldType> types) {
  std::vector<const Field*> fields;
  for (const Field& field : draw.served().fields()) {
    const bool wanted = std::find(types.begin(), types.end(), field.type()) != types.end();
    if (wanted && draw.dataset().payload.FieldNumber(field.name())) fields.push_back(&field);
  }
  return fields;
}

PayloadValue ReadValue(const SampleDraw& draw, const std::string& field, Row row) {
  const data::PayloadTable& payload = draw.dataset().payload;
  return payload.ReadField(row, *payload.FieldNumber(field));
}

// The text quoted and escaped for a filter.
std::string QuotedForFilter(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F
      quoted += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      if (byte == '"' || byte == '\\') quoted += '\\';
      quoted += text[i];
    }
  }
  return quoted + '"';
}

// A condition of a filter, and the rows that pass it.
struct Condition {
  std::string text;
  std::vector<bool> passes = {};  // [row_count]
  // [row_count] rows that pass its NOT; empty: do not ask with NOT.
  std::vector<bool> negation = {};
};

// Makes a condition and finds the rows that pass it. Nothing if a row's value leaves open whether
// it passes.
std::optional<Condition> MakeCondition(const SampleDraw& draw, const Field& field, std::string text,
                                       const std::function<Passing(const PayloadValue&)>& passing) {
  Condition condition;
  condition.text = std::move(text);
  for (std::size_t row = 0; row < draw.oracle().row_count(); ++row) {
    const Passing of_row = passing(ReadValue(draw, field.name(), static_cast<Row>(row)));
    if (of_row == Passing::kUnknown) return std::nullopt;
    condition.passes.push_back(of_row == Passing::kYes);
    condition.negation.push_back(Negated(of_row) == Passing::kYes);
  }
  return condition;
}

std::optional<Condition> DrawNumberCondition(SampleDraw& draw, const Field& field) {
  const PayloadValue value = ReadValue(draw, field.name(), draw.AnyRow());
  const std::optional<WideNumber> bound = ToWideNumber(field.type(), value);
  if (!bound) return std::nullopt;
  const auto* const whole = std::get_if<std::int64_t>(&value.value);
  const std::string number = whole != nullptr ? fmt::format("{}", *whole)
                                              : fmt::format("{}", std::get<double>(value.value));
  const auto comparisons = NumberComparisons();
  const NumberComparison& comparison = comparisons[draw.Below(comparisons.size())];
  return MakeCondition(
      draw, field,
      fmt::format("{} {} {}", QuotedForFilter(field.name()), comparison.symbol, number),
      [&](const PayloadValue& of_row) {
        return Compares(field.type(), of_row, comparison, *bound);
      });
}

// The value's text, or a text of its list. Nothing if there is none, or if it is too long for a
// filter.
std::optional<std::string> AnyText(SampleDraw& draw, const PayloadValue& value) {
  const PayloadValue* element = &value;
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    if (list->empty()) return std::nullopt;
    element = &(*list)[draw.Below(list->size())];
  }
  const auto* const text = std::get_if<std::string>(&element->value);
  if (text == nullptr || text->size() > kTextBytesMax) return std::nullopt;
  return *text;
}

// Changes the case of ASCII letters, each with an even chance.
std::string WithOtherCase(SampleDraw& draw, std::string text) {
  for (char& byte : text) {
    const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
    if (letter && draw.Below(2) == 0) byte = static_cast<char>(byte ^ 0x20);
  }
  return text;
}

// The text, or a spelling that only a server which folds texts takes for equal.
std::string MaybeRespelled(SampleDraw& draw, std::string text) {
  switch (draw.Below(6)) {
    case 0:
      return WithOtherCase(draw, std::move(text));
    case 1:
      return text + ' ';
    default:
      return text;
  }
}

std::optional<Condition> DrawEqualsText(SampleDraw& draw, const Field& field) {
  enum : std::size_t { kEqual, kUnequal, kIn, kNotIn, kForms };
  const std::size_t form = draw.Below(kForms);
  const bool several = form == kIn || form == kNotIn;
  std::vector<std::string> wanted;
  std::vector<std::string> quoted;
  for (std::size_t left = several ? 1 + draw.Below(3) : 1; left > 0; --left) {
    std::optional<std::string> text = AnyText(draw, ReadValue(draw, field.name(), draw.AnyRow()));
    if (!text) continue;
    wanted.push_back(MaybeRespelled(draw, *std::move(text)));
    quoted.push_back(QuotedForFilter(wanted.back()));
  }
  if (wanted.empty()) return std::nullopt;
  constexpr const char* kWritten[kForms] = {"{} = {}", "{} != {}", "{} IN [{}]", "{} NOT IN [{}]"};
  std::string text = fmt::format(fmt::runtime(kWritten[form]), QuotedForFilter(field.name()),
                                 fmt::join(quoted, ", "));
  return MakeCondition(draw, field, std::move(text), [&](const PayloadValue& value) {
    Passing passing = Passing::kNo;
    for (const std::string& each : wanted) {
      const Passing of_text = EqualsText(field.type(), value, each);
      if (of_text != Passing::kNo) passing = of_text;
      if (of_text == Passing::kYes) break;
    }
    // A missing field passes only NOT IN.
    const bool missing = std::holds_alternative<std::monostate>(value.value);
    return form == kNotIn || (form == kUnequal && !missing) ? Negated(passing) : passing;
  });
}

// A text for `:` to find: the whole element of a list, or a part of a text.
std::string AnyPart(SampleDraw& draw, v1::FieldType type, const std::string& folded) {
  if (type == v1::FIELD_TYPE_KEYWORD_LIST || folded.empty()) return folded;
  const std::size_t begin = draw.Below(folded.size());
  const std::string part = folded.substr(begin, 1 + draw.Below(folded.size() - begin));
  const std::size_t first = part.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return part.substr(first, part.find_last_not_of(' ') + 1 - first);
}

// Draws a condition with `:`, restricted to a few rows. Most collections have rows whose folding
// this command does not know.
std::optional<Condition> DrawHasText(SampleDraw& draw, const Field& field) {
  std::vector<Row> rows = {draw.AnyRow()};
  const auto text = AnyText(draw, ReadValue(draw, field.name(), rows.front()));
  const auto folded = text ? AsciiFolded(*text) : std::nullopt;
  const std::string wanted = folded ? AnyPart(draw, field.type(), *folded) : "";
  if (wanted.empty()) return std::nullopt;
  while (rows.size() < kHasRows) rows.push_back(draw.AnyRow());
  Condition condition;
  condition.passes.resize(draw.oracle().row_count());
  std::vector<std::string> ids;
  std::size_t bytes = 0;
  for (const Row row : rows) {
    const Passing passing = HasText(field.type(), ReadValue(draw, field.name(), row), wanted);
    std::string id = QuotedForFilter(draw.dataset().ids.Id(row));
    if (passing == Passing::kUnknown || (bytes += id.size()) > kIdBytesMax) continue;
    ids.push_back(std::move(id));
    condition.passes[row] = passing == Passing::kYes;
  }
  if (ids.empty()) return std::nullopt;
  condition.text = fmt::format("({}:{} AND id IN [{}])", QuotedForFilter(field.name()),
                               QuotedForFilter(WithOtherCase(draw, wanted)), fmt::join(ids, ", "));
  return condition;
}

std::optional<Condition> DrawConditionOn(SampleDraw& draw, const Field& field, bool required) {
  const bool numbers =
      field.type() == v1::FIELD_TYPE_INTEGER || field.type() == v1::FIELD_TYPE_NUMBER;
  const bool has = !required && draw.Below(3) == 0;
  for (int attempt = 0; attempt < kDrawsMax; ++attempt) {
    auto condition = numbers ? DrawNumberCondition(draw, field)
                     : has   ? DrawHasText(draw, field)
                             : DrawEqualsText(draw, field);
    if (condition) return condition;
  }
  return std::nullopt;
}

// Draws a condition on one of the fields.
std::optional<Condition> DrawCondition(SampleDraw& draw, const std::vector<const Field*>& fields,
                                       bool required) {
  const std::size_t first = draw.Below(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    auto condition = DrawConditionOn(draw, *fields[(first + i) % fields.size()], required);
    if (condition) return condition;
  }
  return std::nullopt;
}

// The rows of each keyword of the field. Nothing if a value leaves open which texts it holds.
std::optional<std::vector<KeywordRows>> RowsOfKeywords(const SampleDraw& draw, const Field& field) {
  std::vector<KeywordRows> keywords;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t row = 0; row < draw.oracle().row_count(); ++row) {
    auto texts = GroupTexts(field.type(), ReadValue(draw, field.name(), static_cast<Row>(row)));
    if (!texts) return std::nullopt;
    for (std::string& text : *texts) {
      const auto [place, added] = places.try_emplace(text, keywords.size());
      if (added) keywords.push_back({std::move(text), {}});
      std::vector<Row>& rows = keywords[place->second].rows;
      if (rows.empty() || rows.back() != row) rows.push_back(static_cast<Row>(row));
    }
  }
  return keywords;
}

}  // namespace

Passing Negated(Passing passing) {
  if (passing == Passing::kYes) return Passing::kNo;
  if (passing == Passing::kNo) return Passing::kYes;
  return passing;
}

Passing EqualsText(v1::FieldType type, const PayloadValue& value, std::string_view wanted) {
  if (IsMissing(value)) return Passing::kNo;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (type == v1::FIELD_TYPE_KEYWORD) {
    return text == nullptr ? Passing::kNeither : YesOrNo(*text == wanted);
  }
  // Elements are parts of the text, whatever the separator is.
  if (text != nullptr) {
    return text->find(wanted) == std::string::npos ? Passing::kNo : Passing::kUnknown;
  }
  const PayloadList* const list = TextList(value);
  if (list == nullptr) return Passing::kNeither;
  return YesOrNo(std::ranges::any_of(*list, [&](const PayloadValue& element) {
    return std::get<std::string>(element.value) == wanted;
  }));
}

std::optional<std::vector<std::string>> GroupTexts(v1::FieldType type, const PayloadValue& value) {
  std::vector<std::string> texts;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text != nullptr && type == v1::FIELD_TYPE_KEYWORD_LIST) return std::nullopt;
  if (text != nullptr) texts.push_back(*text);
  const PayloadList* const list = type == v1::FIELD_TYPE_KEYWORD ? nullptr : TextList(value);
  if (list == nullptr) return texts;
  for (const PayloadValue& element : *list) texts.push_back(std::get<std::string>(element.value));
  return texts;
}

std::optional<std::string> AsciiFolded(std::string_view text) {
  std::string folded;
  for (const char byte : text) {
    if (byte < ' ' || byte > '~') return std::nullopt;
    if (byte == ' ' && (folded.empty() || folded.back() == ' ')) return std::nullopt;
    folded += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
  }
  if (folded.ends_with(' ')) return std::nullopt;
  return folded;
}

Passing HasText(v1::FieldType type, const PayloadValue& value, std::string_view wanted) {
  if (IsMissing(value)) return Passing::kNo;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (type == v1::FIELD_TYPE_KEYWORD) {
    if (text == nullptr) return Passing::kNeither;
    const std::optional<std::string> folded = AsciiFolded(*text);
    return folded ? YesOrNo(folded->find(wanted) != std::string::npos) : Passing::kUnknown;
  }
  if (text != nullptr) return Passing::kUnknown;
  const PayloadList* const list = TextList(value);
  if (list == nullptr) return Passing::kNeither;
  Passing passing = Passing::kNo;
  for (const PayloadValue& element : *list) {
    const std::optional<std::string> folded = AsciiFolded(std::get<std::string>(element.value));
    if (folded && *folded == wanted) return Passing::kYes;
    if (!folded) passing = Passing::kUnknown;
  }
  return passing;
}

std::optional<WideNumber> ToWideNumber(v1::FieldType type, const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  const auto* const number = std::get_if<double>(&value.value);
  if (number == nullptr) return std::nullopt;
  const bool is_integer = std::floor(*number) == *number && std::abs(*number) < 0x1p63;
  if (type == v1::FIELD_TYPE_INTEGER && !is_integer) return std::nullopt;
  return *number;
}

std::span<const NumberComparison> NumberComparisons() { return kNumberComparisons; }

Passing Compares(v1::FieldType type, const PayloadValue& value, const NumberComparison& comparison,
                 WideNumber bound) {
  if (IsMissing(value)) return Passing::kNo;
  const std::optional<WideNumber> number = ToWideNumber(type, value);
  if (!number) return Passing::kNeither;
  return YesOrNo(*number < bound   ? comparison.below
                 : *number > bound ? comparison.above
                                   : comparison.equal);
}

std::optional<DrawnFilter> DrawFilter(SampleDraw& draw, bool required) {
  auto fields = FindFields(draw, {v1::FIELD_TYPE_KEYWORD, v1::FIELD_TYPE_KEYWORD_LIST,
                                  v1::FIELD_TYPE_INTEGER, v1::FIELD_TYPE_NUMBER});
  // In filters `id` is the item's id, even if the payload has a field `id`.
  std::erase_if(fields, [](const Field* field) { return field->name() == "id"; });
  if (fields.empty()) return std::nullopt;
  const std::optional<Condition> first = DrawCondition(draw, fields, required);
  if (!first) return std::nullopt;
  DrawnFilter drawn{.text = first->text, .passes = first->passes};
  if (draw.Below(3) == 0) return drawn;
  const std::optional<Condition> second = DrawCondition(draw, fields, required);
  if (!second) return drawn;
  const std::size_t join = draw.Below(second->negation.empty() ? 2 : 3);
  constexpr const char* kJoined[] = {"{} AND {}", "{} OR {}", "{} AND NOT {}"};
  drawn.text = fmt::format(fmt::runtime(kJoined[join]), first->text, second->text);
  for (std::size_t row = 0; row < drawn.passes.size(); ++row) {
    const bool a = first->passes[row];
    const bool b = join == 2 ? second->negation[row] : second->passes[row];
    drawn.passes[row] = join == 1 ? a || b : a && b;
  }
  return drawn;
}

std::optional<KeywordFieldRows> DrawKeywordField(SampleDraw& draw) {
  const auto fields = FindFields(draw, {v1::FIELD_TYPE_KEYWORD, v1::FIELD_TYPE_KEYWORD_LIST});
  if (fields.empty()) return std::nullopt;
  const std::size_t first = draw.Below(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = *fields[(first + i) % fields.size()];
    auto keywords = RowsOfKeywords(draw, field);
    if (keywords) return KeywordFieldRows{field.name(), *std::move(keywords)};
  }
  return std::nullopt;
}

std::optional<OrderedRows> DrawOrderedField(SampleDraw& draw) {
  const auto fields = FindFields(draw, {v1::FIELD_TYPE_INTEGER, v1::FIELD_TYPE_NUMBER});
  if (fields.empty()) return std::nullopt;
  const Field& field = *fields[draw.Below(fields.size())];
  OrderedRows drawn{.field = field.name()};
  std::vector<WideNumber> values;
  for (std::size_t row = 0; row < draw.oracle().row_count(); ++row) {
    drawn.rows.push_back(static_cast<Row>(row));
    values.push_back(
        ToWideNumber(field.type(), ReadValue(draw, field.name(), static_cast<Row>(row)))
            .value_or(-std::numeric_limits<WideNumber>::infinity()));
  }
  std::ranges::stable_sort(drawn.rows, std::greater<>(), [&](Row row) { return values[row]; });
  return drawn;
}

}  // namespace simile::cli
