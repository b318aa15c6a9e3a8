#include "cli/verify/filter_draw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cli/verify/sample.h"
#include "filter/separated_keywords.h"
#include "filter/text_index.h"

namespace simile::cli {
namespace {

// How often drawing a row with a value is tried before a field counts as too sparse.
constexpr int kDrawsMax = 32;

using Field = v1::PayloadField;

std::vector<const Field*> FieldsOf(const SampleDraw& draw,
                                   std::initializer_list<v1::FieldType> types) {
  std::vector<const Field*> fields;
  for (const Field& field : draw.served().fields()) {
    const bool wanted = std::find(types.begin(), types.end(), field.type()) != types.end();
    if (wanted && draw.dataset().payload.FieldNumber(field.name())) fields.push_back(&field);
  }
  return fields;
}

PayloadValue ValueOf(const SampleDraw& draw, const std::string& field, Row row) {
  const data::PayloadTable& payload = draw.dataset().payload;
  return payload.ReadField(row, *payload.FieldNumber(field));
}

// The keywords of a value, folded as filters compare them.
std::vector<std::string> Keywords(v1::FieldType type, const PayloadValue& value) {
  std::vector<std::string> keywords;
  if (std::holds_alternative<std::monostate>(value.value)) return keywords;
  filter::ForEachKeyword(
      type == v1::FIELD_TYPE_KEYWORD_LIST ? data::FieldType::kKeywords : data::FieldType::kKeyword,
      value, [&](std::string_view keyword) { keywords.push_back(filter::FoldText(keyword)); });
  return keywords;
}

std::optional<double> NumberOf(const PayloadValue& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value.value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* const number = std::get_if<double>(&value.value)) return *number;
  return std::nullopt;
}

// The text in quotes, as filters write it. Nothing for text with control characters.
std::optional<std::string> QuotedForFilter(std::string_view text) {
  std::string quoted = "\"";
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) return std::nullopt;
    if (byte == '"' || byte == '\\') quoted += '\\';
    quoted += byte;
  }
  return quoted + '"';
}

// A text value of the row that a filter can compare: its first keyword.
std::optional<std::string> AnyKeyword(v1::FieldType type, const PayloadValue& value) {
  std::optional<std::string> first;
  if (std::holds_alternative<std::monostate>(value.value)) return first;
  filter::ForEachKeyword(
      type == v1::FIELD_TYPE_KEYWORD_LIST ? data::FieldType::kKeywords : data::FieldType::kKeyword,
      value, [&](std::string_view keyword) {
        if (!first && !filter::FoldText(keyword).empty()) first = keyword;
      });
  return first;
}

// A condition on one field, and which rows pass it.
std::optional<DrawnFilter> DrawCondition(SampleDraw& draw, const Field& field) {
  const std::optional<std::string> name = QuotedForFilter(field.name());
  if (!name) return std::nullopt;
  for (int attempt = 0; attempt < kDrawsMax; ++attempt) {
    const PayloadValue value = ValueOf(draw, field.name(), draw.AnyRow());
    DrawnFilter drawn{.passes = std::vector<bool>(draw.oracle().row_count())};
    if (field.type() == v1::FIELD_TYPE_INTEGER || field.type() == v1::FIELD_TYPE_NUMBER) {
      const std::optional<double> bound = NumberOf(value);
      // Larger integers are no doubles.
      if (!bound || !std::isfinite(*bound) || std::abs(*bound) > 0x1p53) continue;
      const bool at_least = draw.Below(2) == 0;
      const std::string number = std::holds_alternative<std::int64_t>(value.value)
                                     ? fmt::format("{}", std::get<std::int64_t>(value.value))
                                     : fmt::format("{}", *bound);
      drawn.text = fmt::format("{} {} {}", *name, at_least ? ">=" : "<", number);
      for (std::size_t row = 0; row < drawn.passes.size(); ++row) {
        const auto held = NumberOf(ValueOf(draw, field.name(), static_cast<Row>(row)));
        drawn.passes[row] = held && (at_least ? *held >= *bound : *held < *bound);
      }
      return drawn;
    }
    const std::optional<std::string> keyword = AnyKeyword(field.type(), value);
    const auto quoted = keyword ? QuotedForFilter(*keyword) : std::nullopt;
    if (!quoted) continue;
    drawn.text = fmt::format("{} = {}", *name, *quoted);
    const std::string folded = filter::FoldText(*keyword);
    for (std::size_t row = 0; row < drawn.passes.size(); ++row) {
      const auto held = Keywords(field.type(), ValueOf(draw, field.name(), static_cast<Row>(row)));
      drawn.passes[row] = std::find(held.begin(), held.end(), folded) != held.end();
    }
    return drawn;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DrawnFilter> DrawFilter(SampleDraw& draw) {
  const auto fields = FieldsOf(draw, {v1::FIELD_TYPE_KEYWORD, v1::FIELD_TYPE_KEYWORD_LIST,
                                      v1::FIELD_TYPE_INTEGER, v1::FIELD_TYPE_NUMBER});
  if (fields.empty()) return std::nullopt;
  std::optional<DrawnFilter> first = DrawCondition(draw, *fields[draw.Below(fields.size())]);
  if (!first || draw.Below(3) == 0) return first;
  const std::optional<DrawnFilter> second = DrawCondition(draw, *fields[draw.Below(fields.size())]);
  if (!second) return first;
  const std::size_t join = draw.Below(3);
  constexpr const char* kJoined[] = {"{} AND {}", "{} OR {}", "{} AND NOT {}"};
  first->text = fmt::format(fmt::runtime(kJoined[join]), first->text, second->text);
  for (std::size_t row = 0; row < first->passes.size(); ++row) {
    const bool a = first->passes[row];
    const bool b = second->passes[row];
    first->passes[row] = join == 0 ? a && b : join == 1 ? a || b : a && !b;
  }
  return first;
}

std::optional<KeywordFieldRows> DrawKeywordField(SampleDraw& draw) {
  const auto fields = FieldsOf(draw, {v1::FIELD_TYPE_KEYWORD, v1::FIELD_TYPE_KEYWORD_LIST});
  if (fields.empty()) return std::nullopt;
  const Field& field = *fields[draw.Below(fields.size())];
  KeywordFieldRows drawn{.field = field.name()};
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t row = 0; row < draw.oracle().row_count(); ++row) {
    for (std::string& keyword :
         Keywords(field.type(), ValueOf(draw, field.name(), static_cast<Row>(row)))) {
      const auto [place, added] = places.try_emplace(keyword, drawn.keywords.size());
      if (added) drawn.keywords.push_back({std::move(keyword), {}});
      std::vector<Row>& rows = drawn.keywords[place->second].rows;
      if (rows.empty() || rows.back() != row) rows.push_back(static_cast<Row>(row));
    }
  }
  return drawn;
}

std::optional<OrderedRows> DrawOrderedField(SampleDraw& draw) {
  const auto fields = FieldsOf(draw, {v1::FIELD_TYPE_INTEGER, v1::FIELD_TYPE_NUMBER});
  if (fields.empty()) return std::nullopt;
  const Field& field = *fields[draw.Below(fields.size())];
  OrderedRows drawn{.field = field.name()};
  std::vector<double> values;
  for (std::size_t row = 0; row < draw.oracle().row_count(); ++row) {
    drawn.rows.push_back(static_cast<Row>(row));
    values.push_back(NumberOf(ValueOf(draw, field.name(), static_cast<Row>(row)))
                         .value_or(-std::numeric_limits<double>::infinity()));
  }
  std::ranges::stable_sort(drawn.rows, std::greater<>(), [&](Row row) { return values[row]; });
  return drawn;
}

}  // namespace simile::cli
