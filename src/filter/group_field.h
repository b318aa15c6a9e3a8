#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/payload/payload_table.h"
#include "filter/payload_index.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The groups of rows that share a value of one field. A value is a keyword, an integer, or an
// element of a list. Borrows the payload and its index.
class GroupField {
 public:
  // Whether rows are grouped by fields of the type.
  static bool Groups(FieldType type);

  // REQUIRES: Groups(field.type), and the field's number in the payload is field_number.
  GroupField(const data::PayloadTable& payload, std::uint32_t field_number, const Field& field);

  // How many groups there are.
  std::size_t group_count() const;
  // Group numbers are below this number, in the order of KeywordColumn or of the integers. A number
  // without a group has no rows.
  std::size_t number_end() const;
  // The keyword, or the integer's digits.
  std::string Text(std::uint32_t group) const;
  std::uint64_t CountRows(std::uint32_t group) const;
  // Adds the rows of a group.
  void AddRows(std::uint32_t group, RowMask& mask) const;
  // The work of AddRows, as RowSet::looks.
  std::uint64_t LooksFor(std::uint32_t group) const;

  // The row's groups, ascending and distinct; none when it lacks the field.
  // Cost: one decode of the row.
  void ReadGroups(Row row, std::vector<std::uint32_t>& groups) const;

 private:
  const data::PayloadTable* payload_;
  std::uint32_t field_number_;
  const KeywordColumn* keywords_;                // null for integers
  const OrderedColumn<std::int64_t>* integers_;  // null for keywords; a group's number is its place
};

}  // namespace simile::filter
