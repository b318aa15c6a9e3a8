#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include "data/payload_table.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Packs rows one by one into a PayloadTable.
class PayloadTableBuilder {
 public:
  //   row_count  expected rows, for which offsets are reserved
  PayloadTableBuilder(std::size_t row_count, const Limits& limits);

  // Adds the next row. Errors: kInvalidArgument when the row brings one field too many, or is too
  // large when packed. The caller adds file and line to the message.
  // REQUIRES: names are distinct, text is valid UTF-8: the reader has checked.
  absl::Status Add(const PayloadObject& row);

  std::size_t row_count() const { return table_.starts_.size(); }
  PayloadTable Build() &&;

 private:
  absl::Status NumberOf(std::string_view name, std::uint32_t& number);
  void Describe(FieldInfo& field, const PayloadValue& value);
  void Store(const std::vector<std::uint8_t>& row);

  const std::size_t fields_max_;
  PayloadTable table_;  // fields in the order of first mention until Build sorts them
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  std::vector<std::uint8_t> packed_;  // the current row
};

}  // namespace simile::data
