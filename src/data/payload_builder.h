#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "data/field_rules.h"
#include "data/keep.h"
#include "data/payload_table.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Packs rows one by one into a PayloadTable.
class PayloadTableBuilder {
 public:
  //   row_count  expected rows, for which offsets are reserved
  //   keep       kNothing: the same checks and fields, but the table has no rows
  PayloadTableBuilder(std::size_t row_count, const Limits& limits, Keep keep = Keep::kRows);

  // Adds the next row. Errors: kInvalidArgument when the row brings one field too many, or is too
  // large when packed. The caller adds file and line to the message.
  // REQUIRES: names are distinct, text is valid UTF-8: the reader has checked.
  absl::Status Add(const PayloadObject& row);

  // Decides the types of the fields, when all rows are added. Without this they are guessed from
  // the values. Errors, notes: ChooseFieldTypes'.
  absl::Status ChooseTypes(const FieldRules& rules, std::string_view file,
                           std::vector<std::string>& notes);
  PayloadTable Build() &&;

 private:
  absl::Status NumberOf(std::string_view name, std::uint32_t& number);
  void Store(const std::vector<std::uint8_t>& row);

  const std::size_t fields_max_;
  const Keep keep_;
  bool types_chosen_ = false;
  Row next_row_ = 0;
  PayloadTable table_;  // fields in the order of first mention until Build sorts them
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::uint8_t> packed_;  // the current row
};

}  // namespace simile::data
