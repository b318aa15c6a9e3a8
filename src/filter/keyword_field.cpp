#include "filter/keyword_field.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <variant>

#include "filter/separated_keywords.h"

namespace simile::filter {

KeywordField::KeywordField(const data::PayloadTable& payload, std::uint32_t field_number,
                           const Field& field)
    : payload_(&payload),
      field_number_(field_number),
      type_(field.type),
      column_(&std::get<KeywordColumn>(field.column)) {}

void KeywordField::KeywordsOf(Row row, std::vector<std::uint32_t>& keywords) const {
  keywords.clear();
  const PayloadValue value = payload_->ReadField(row, field_number_);
  if (std::holds_alternative<std::monostate>(value.value)) return;
  ForEachKeyword(type_, value, [&](std::string_view text) {
    if (const auto keyword = column_->Find(text)) keywords.push_back(*keyword);
  });
  std::ranges::sort(keywords);
  keywords.erase(std::unique(keywords.begin(), keywords.end()), keywords.end());
}

std::string KeywordField::Spelling(std::uint32_t keyword, const RowMask* mask) const {
  if (mask == nullptr) return std::string(column_->Spelling(keyword));
  const std::optional<Row> row = column_->FirstRowOf(keyword, *mask);
  assert(row.has_value());
  const PayloadValue value = payload_->ReadField(*row, field_number_);
  std::string spelling;
  ForEachKeyword(type_, value, [&](std::string_view text) {
    if (spelling.empty() && column_->Find(text) == keyword) spelling = text;
  });
  return spelling;
}

}  // namespace simile::filter
