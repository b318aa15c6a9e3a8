#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/status/statusor.h>

#include "data/field_type.h"
#include "data/payload_table.h"
#include "filter/keyword_column.h"
#include "filter/ordered_column.h"
#include "filter/row_set.h"

namespace simile::filter {

using data::FieldType;

// The values of one payload field, arranged for filters.
struct Field {
  std::string name;
  FieldType type = FieldType::kOther;
  RowSet present;  // rows that have it, null not counted
  // By type: keywords; integers, and times in microseconds since 1970; numbers; the rows where it
  // is true; nothing.
  std::variant<std::monostate, KeywordColumn, OrderedColumn<std::int64_t>, OrderedColumn<double>,
               RowSet>
      column;

  std::uint64_t bytes() const;
};

// All fields of a collection's payload. Types come from the data: a field is what all of its values
// are. A text field is a time when every value is one, and a list of keywords when values like
// "A|B|C" occur whose parts are few (SeparatesKeywords). Immutable; safe to share.
class PayloadIndex {
 public:
  PayloadIndex() = default;
  //   types  of fields whose owner knows better than their values show
  // Errors: kInvalidArgument for a type that not all values have, naming a row.
  // Cost: two passes over the payload, or three.
  static absl::StatusOr<PayloadIndex> Build(const data::PayloadTable& payload,
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
