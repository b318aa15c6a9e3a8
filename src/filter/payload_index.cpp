#include "filter/payload_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "filter/separated_keywords.h"
#include "filter/time_value.h"

namespace simile::filter {
namespace {

// Calls visit(row, value) for every row that has the field, null not counted.
template <class Visit>
void ForEachValue(const data::PayloadTable& payload, std::uint32_t field_number, Visit visit) {
  for (std::size_t r = 0; r < payload.row_count(); ++r) {
    const auto row = static_cast<Row>(r);
    const PayloadValue value = payload.ReadField(row, field_number);
    if (!std::holds_alternative<std::monostate>(value.value)) visit(row, value);
  }
}

FieldType TypeOfTexts(const data::PayloadTable& payload, std::uint32_t field_number) {
  bool all_times = true;
  bool any_bar = false;
  ForEachValue(payload, field_number, [&](Row, const PayloadValue& value) {
    const auto& text = std::get<std::string>(value.value);
    all_times = all_times && ParseTime(text).has_value();
    any_bar = any_bar || text.find(kKeywordSeparator) != std::string::npos;
  });
  if (all_times) return FieldType::kTime;
  if (!any_bar) return FieldType::kKeyword;
  SeparatorEvidence evidence;
  ForEachValue(payload, field_number, [&](Row, const PayloadValue& value) {
    evidence.Add(std::get<std::string>(value.value));
  });
  return evidence.SeparatesKeywords() ? FieldType::kKeywords : FieldType::kKeyword;
}

FieldType TypeOfLists(const data::PayloadTable& payload, std::uint32_t field_number) {
  bool all_texts = true;
  ForEachValue(payload, field_number, [&](Row, const PayloadValue& value) {
    for (const PayloadValue& element : std::get<PayloadList>(value.value)) {
      all_texts = all_texts && std::holds_alternative<std::string>(element.value);
    }
  });
  return all_texts ? FieldType::kKeywords : FieldType::kOther;
}

FieldType TypeOf(const data::PayloadTable& payload, std::uint32_t field_number) {
  const std::string& stored = payload.fields()[field_number].type;
  if (stored == "string") return TypeOfTexts(payload, field_number);
  if (stored == "list") return TypeOfLists(payload, field_number);
  if (stored == "integer") return FieldType::kInteger;
  if (stored == "number") return FieldType::kNumber;
  if (stored == "boolean") return FieldType::kBoolean;
  return FieldType::kOther;
}

// Calls visit(keyword) for each of a value's.
template <class Visit>
void ForEachKeyword(FieldType type, const PayloadValue& value, Visit visit) {
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) visit(std::get<std::string>(element.value));
    return;
  }
  const auto& text = std::get<std::string>(value.value);
  if (type == FieldType::kKeyword) return visit(text);
  for (const std::string_view part : SplitKeywords(text)) visit(part);
}

double NumberOf(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value))
    return static_cast<double>(*whole);
  return std::get<double>(value.value);
}

// Builds one field's column out of its values.
class FieldBuilder {
 public:
  explicit FieldBuilder(FieldType type) : type_(type) {}

  void Add(Row row, const PayloadValue& value) {
    present_.push_back(row);
    switch (type_) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        return ForEachKeyword(type_, value,
                              [&](std::string_view text) { keywords_.Add(row, text); });
      case FieldType::kInteger:
        return whole_.push_back(std::get<std::int64_t>(value.value));
      case FieldType::kTime:
        return whole_.push_back(ParseTime(std::get<std::string>(value.value)).value());
      case FieldType::kNumber:
        return numbers_.push_back(NumberOf(value));
      case FieldType::kBoolean:
        if (std::get<bool>(value.value)) true_.push_back(row);
        return;
      case FieldType::kOther:
        return;
    }
  }

  Field Build(const std::string& name) && {
    Field field;
    field.name = name;
    field.type = type_;
    switch (type_) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        field.column = std::move(keywords_).Build();
        break;
      case FieldType::kInteger:
      case FieldType::kTime:
        field.column = OrderedColumn<std::int64_t>(whole_, present_);
        break;
      case FieldType::kNumber:
        field.column = OrderedColumn<double>(numbers_, present_);
        break;
      case FieldType::kBoolean:
        field.column = RowSet(true_);
        break;
      case FieldType::kOther:
        break;
    }
    field.present = RowSet(present_);
    return field;
  }

 private:
  const FieldType type_;
  std::vector<Row> present_;
  KeywordColumn::Builder keywords_;
  std::vector<std::int64_t> whole_;
  std::vector<double> numbers_;
  std::vector<Row> true_;
};

struct ColumnBytes {
  std::uint64_t operator()(std::monostate) const { return 0; }
  template <class Column>
  std::uint64_t operator()(const Column& column) const {
    return column.bytes();
  }
};

}  // namespace

std::uint64_t Field::bytes() const { return present.bytes() + std::visit(ColumnBytes{}, column); }

PayloadIndex PayloadIndex::Build(const data::PayloadTable& payload) {
  PayloadIndex index;
  index.fields_.reserve(payload.fields().size());
  for (std::uint32_t number = 0; number < payload.fields().size(); ++number) {
    FieldBuilder builder(TypeOf(payload, number));
    ForEachValue(payload, number,
                 [&](Row row, const PayloadValue& value) { builder.Add(row, value); });
    index.fields_.push_back(std::move(builder).Build(payload.fields()[number].name));
  }
  return index;
}

const Field* PayloadIndex::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      fields_, name, {}, [](const Field& field) { return std::string_view(field.name); });
  return found != fields_.end() && found->name == name ? &*found : nullptr;
}

std::uint64_t PayloadIndex::bytes() const {
  std::uint64_t bytes = fields_.capacity() * sizeof(Field);
  for (const Field& field : fields_) bytes += field.bytes();
  return bytes;
}

}  // namespace simile::filter
