#pragma once

#include <cstdint>
#include <vector>

#include "data/payload_table.h"
#include "filter/payload_index.h"

namespace simile::filter {

// The keywords of each row in one field. Borrows the payload and its index.
class KeywordField {
 public:
  // REQUIRES: the field's values are keywords, and its number in the payload is field_number.
  KeywordField(const data::PayloadTable& payload, std::uint32_t field_number, const Field& field);

  // Numbers the keywords.
  const KeywordColumn& column() const { return *column_; }
  // The row's keywords, ascending and distinct; none when it lacks the field.
  // Cost: one decode of the row.
  void KeywordsOf(Row row, std::vector<std::uint32_t>& keywords) const;

 private:
  const data::PayloadTable* payload_;
  std::uint32_t field_number_;
  const KeywordColumn* column_;
};

}  // namespace simile::filter
