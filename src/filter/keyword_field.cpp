#include "filter/keyword_field.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "filter/separated_keywords.h"

namespace simile::filter {

KeywordField::KeywordField(const data::PayloadTable& payload, std::uint32_t field_number,
                           const Field& field)
    : payload_(&payload),
      field_number_(field_number),
      column_(&std::get<KeywordColumn>(field.column)) {}

void KeywordField::KeywordsOf(Row row, std::vector<std::uint32_t>& keywords) const {
  keywords.clear();
  const PayloadValue value = payload_->ReadField(row, field_number_);
  const data::FieldInfo& field = payload_->fields()[field_number_];
  if (std::holds_alternative<std::monostate>(value.value)) return;
  if (!data::Fits(field.type, data::KindOf(value))) return;
  ForEachKeyword(field, value, [&](std::string_view text) {
    if (const auto keyword = column_->Find(text)) keywords.push_back(*keyword);
  });
  std::ranges::sort(keywords);
  keywords.erase(std::unique(keywords.begin(), keywords.end()), keywords.end());
}

}  // namespace simile::filter
