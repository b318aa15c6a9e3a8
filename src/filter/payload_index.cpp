#include "filter/payload_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "data/json_value.h"
#include "data/time_value.h"
#include "filter/separated_keywords.h"

namespace simile::filter {
namespace {

// Calls visit(field number, row, value) for every value of every row except null.
template <class Visit>
void ForEachValue(const data::PayloadTable& payload, Visit visit) {
  for (std::size_t r = 0; r < payload.row_count(); ++r) {
    const auto row = static_cast<Row>(r);
    payload.VisitFields(row, [&](std::uint32_t field_number, const PayloadValue& value) {
      if (!std::holds_alternative<std::monostate>(value.value)) visit(field_number, row, value);
    });
  }
}

// Finds a field's type: the given one, or the one that all of its values have.
class TypeFinder {
 public:
  //   stored  FieldInfo::type
  TypeFinder(std::string_view stored, std::optional<FieldType> given)
      : given_(given), stored_(stored) {}

  void Observe(const PayloadValue& value) {
    if (given_) return;
    if (stored_ == "string") {
      const auto& text = std::get<std::string>(value.value);
      all_times_ = all_times_ && data::ParseTime(text).has_value();
      any_bar_ = any_bar_ || text.find(kKeywordSeparator) != std::string::npos;
    } else if (stored_ == "list") {
      all_texts_ = all_texts_ && data::Fits(FieldType::kKeywords, value);
    }
  }
  // Whether the type depends on AddEvidence for every value.
  bool undecided() const { return !given_ && stored_ == "string" && !all_times_ && any_bar_; }
  void AddEvidence(const PayloadValue& value) { evidence_.Add(std::get<std::string>(value.value)); }

  FieldType type() const {
    if (given_) return *given_;
    if (stored_ == "string" && all_times_) return FieldType::kTime;
    if (stored_ == "string") {
      return evidence_.SeparatesKeywords() ? FieldType::kKeywords : FieldType::kKeyword;
    }
    if (stored_ == "list") return all_texts_ ? FieldType::kKeywords : FieldType::kOther;
    if (stored_ == "integer") return FieldType::kInteger;
    if (stored_ == "number") return FieldType::kNumber;
    if (stored_ == "boolean") return FieldType::kBoolean;
    return FieldType::kOther;
  }

 private:
  const std::optional<FieldType> given_;
  const std::string_view stored_;
  bool all_times_ = true;
  bool any_bar_ = false;
  bool all_texts_ = true;
  SeparatorEvidence evidence_;
};

std::vector<FieldType> FindTypes(const data::PayloadTable& payload,
                                 std::span<const data::NamedFieldType> types) {
  std::vector<TypeFinder> finders;
  for (const data::FieldInfo& field : payload.fields()) {
    const auto given = std::ranges::find(types, field.name, &data::NamedFieldType::field);
    finders.emplace_back(field.type,
                         given != types.end() ? std::optional(given->type) : std::nullopt);
  }
  ForEachValue(payload, [&](std::uint32_t field_number, Row, const PayloadValue& value) {
    finders[field_number].Observe(value);
  });
  if (std::ranges::any_of(finders, &TypeFinder::undecided)) {
    ForEachValue(payload, [&](std::uint32_t field_number, Row, const PayloadValue& value) {
      if (finders[field_number].undecided()) finders[field_number].AddEvidence(value);
    });
  }
  std::vector<FieldType> found;
  found.reserve(finders.size());
  for (const TypeFinder& finder : finders) found.push_back(finder.type());
  return found;
}

double NumberOf(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value))
    return static_cast<double>(*whole);
  return std::get<double>(value.value);
}

// Builds one field's column from its values.
class FieldBuilder {
 public:
  //   rows  that have the field, so that nothing is moved while it grows
  FieldBuilder(FieldType type, std::size_t rows) : type_(type) {
    present_.reserve(rows);
    if (type == FieldType::kInteger || type == FieldType::kTime) whole_.reserve(rows);
    if (type == FieldType::kNumber) numbers_.reserve(rows);
    if (type == FieldType::kKeyword) keywords_.Reserve(rows);
  }

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
        return whole_.push_back(data::ParseTime(std::get<std::string>(value.value)).value());
      case FieldType::kNumber:
        return numbers_.push_back(NumberOf(value));
      case FieldType::kBoolean:
        if (std::get<bool>(value.value)) true_.push_back(row);
        return;
      case FieldType::kOther:
        return;
    }
  }

  //   row_count  of the collection
  Field Build(const std::string& name, std::size_t row_count) && {
    Field field;
    field.name = name;
    field.type = type_;
    switch (type_) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        field.column = std::move(keywords_).Build(row_count);
        break;
      case FieldType::kInteger:
      case FieldType::kTime:
        field.column = OrderedColumn<std::int64_t>(whole_, present_);
        break;
      case FieldType::kNumber:
        field.column = OrderedColumn<double>(numbers_, present_);
        break;
      case FieldType::kBoolean:
        field.column = RowSet(true_, row_count);
        break;
      case FieldType::kOther:
        break;
    }
    field.present = RowSet(present_, row_count);
    return field;
  }

 private:
  FieldType type_;
  std::vector<Row> present_;
  KeywordColumn::Builder keywords_;
  std::vector<std::int64_t> whole_;
  std::vector<double> numbers_;
  std::vector<Row> true_;
};

}  // namespace

std::uint64_t Field::bytes() const {
  const auto column_bytes = [](const auto& indexed) -> std::uint64_t {
    if constexpr (requires { indexed.bytes(); }) return indexed.bytes();
    return 0;
  };
  return present.bytes() + std::visit(column_bytes, column);
}

PayloadIndex PayloadIndex::Build(const data::PayloadTable& payload,
                                 std::span<const data::NamedFieldType> types) {
  const std::vector<FieldType> found = FindTypes(payload, types);
  std::vector<FieldBuilder> builders;
  builders.reserve(found.size());
  for (std::size_t number = 0; number < found.size(); ++number) {
    builders.emplace_back(found[number], payload.fields()[number].rows);
  }
  ForEachValue(payload, [&](std::uint32_t field_number, Row row, const PayloadValue& value) {
    builders[field_number].Add(row, value);
  });
  PayloadIndex index;
  index.fields_.reserve(builders.size());
  for (std::size_t number = 0; number < builders.size(); ++number) {
    // Moved into the loop, so that its memory is freed before the next column is built.
    FieldBuilder builder = std::move(builders[number]);
    index.fields_.push_back(
        std::move(builder).Build(payload.fields()[number].name, payload.row_count()));
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
