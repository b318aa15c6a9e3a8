#include "filter/group_field.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "filter/keyword_column.h"

namespace simile::filter {

bool GroupField::Groups(FieldType type) {
  const FieldType of_element = data::TypeOfElements(type);
  return of_element == FieldType::kKeyword || of_element == FieldType::kInteger;
}

GroupField::GroupField(const data::PayloadTable& payload, std::uint32_t field_number,
                       const Field& field)
    : payload_(&payload),
      field_number_(field_number),
      keywords_(std::get_if<KeywordColumn>(&field.column)),
      integers_(std::get_if<OrderedColumn<std::int64_t>>(&field.column)) {}

std::size_t GroupField::group_count() const {
  return keywords_ != nullptr ? keywords_->keyword_count() : integers_->distinct_count();
}

std::size_t GroupField::number_end() const {
  return keywords_ != nullptr ? keywords_->keyword_count() : integers_->size();
}

std::string GroupField::Text(std::uint32_t group) const {
  return keywords_ != nullptr ? std::string(keywords_->Text(group))
                              : fmt::to_string(integers_->ValueAt(group));
}

std::uint64_t GroupField::CountRows(std::uint32_t group) const {
  return keywords_ != nullptr ? keywords_->CountRows(group) : integers_->RowsAt(group).size();
}

void GroupField::AddRows(std::uint32_t group, RowMask& mask) const {
  if (keywords_ != nullptr) return keywords_->AddRows(group, mask);
  for (const Row row : integers_->RowsAt(group)) mask.Allow(row);
}

std::uint64_t GroupField::LooksFor(std::uint32_t group) const {
  return keywords_ != nullptr ? keywords_->LooksFor(group) : integers_->RowsAt(group).size();
}

void GroupField::ReadGroups(Row row, std::vector<std::uint32_t>& groups) const {
  groups.clear();
  const PayloadValue value = payload_->ReadField(row, field_number_);
  const data::FieldInfo& field = payload_->fields()[field_number_];
  if (std::holds_alternative<std::monostate>(value.value)) return;
  if (!data::Fits(field.type, data::ClassifyValue(value))) return;
  if (keywords_ != nullptr) {
    ForEachKeyword(field, value, [&](std::string_view text) {
      if (const auto keyword = keywords_->Find(text)) groups.push_back(*keyword);
    });
  } else {
    ForEachElement(value, [&](const PayloadValue& whole) {
      if (const auto place = integers_->Find(*data::ToWhole(whole))) groups.push_back(*place);
    });
  }
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
}

}  // namespace simile::filter
