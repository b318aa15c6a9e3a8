#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/field_type.h"
#include "data/payload_table.h"
#include "filter/keyword_column.h"
#include "filter/ordered_column.h"
#include "filter/row_set.h"

namespace simile::filter {

using data::FieldType;

// The values of one payload field, indexed for filters.
struct Field {
  std::string name;
  FieldType type = FieldType::kOther;
  RowSet present;  // rows that have the field, null not counted
  // By type: keywords; integers, and times in microseconds since 1970; numbers; for booleans the
  // rows where it is true; nothing for kOther.
  std::variant<std::monostate, KeywordColumn, OrderedColumn<std::int64_t>, OrderedColumn<double>,
               RowSet>
      column;

  std::uint64_t bytes() const;
};

// All fields of a collection's payload. A field has the type that all of its values have. A text
// field is a time when every value is one, and a list of keywords when values such as "A|B|C" have
// parts that repeat (SeparatesKeywords). Immutable; safe to share.
class PayloadIndex {
 public:
  PayloadIndex() = default;
  //   types  given ones, which take precedence over the values
  // REQUIRES: the values are of the given types (data::Fits), as a load has checked.
  // Cost: two or three passes over the payload.
  static PayloadIndex Build(const data::PayloadTable& payload,
                            std::span<const data::NamedFieldType> types);

  // By name.
  std::span<const Field> fields() const { return fields_; }
  // Null when no row has it.
  const Field* Find(std::string_view name) const;
  std::uint64_t bytes() const;

 private:
  std::vector<Field> fields_;
};

}  // namespace simile::filter
