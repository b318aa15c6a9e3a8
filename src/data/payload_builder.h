#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <absl/status/status.h>

#include "data/keep.h"
#include "data/payload_table.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// A field whose values are of several types, integers and other numbers counted as one.
struct MixedField {
  std::string name;
  std::vector<std::pair<std::string_view, Row>> types;  // "an integer", and the first row with one
};

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

  // Of the rows so far, by name.
  std::vector<MixedField> MixedFields() const;
  PayloadTable Build() &&;

 private:
  absl::Status NumberOf(std::string_view name, std::uint32_t& number);
  void Describe(std::uint32_t number, const PayloadValue& value);
  void Store(const std::vector<std::uint8_t>& row);

  static constexpr Row kNoRow = std::numeric_limits<Row>::max();
  // The first row that has a value of each type, by the variant's index.
  using FirstRows = std::array<Row, std::variant_size_v<decltype(PayloadValue::value)>>;

  const std::size_t fields_max_;
  const Keep keep_;
  Row next_row_ = 0;
  PayloadTable table_;  // fields in the order of first mention until Build sorts them
  std::vector<FirstRows> first_rows_;  // by field, in the same order
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::uint8_t> packed_;  // the current row
};

}  // namespace simile::data
