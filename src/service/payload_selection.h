#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "data/payload_table.h"

namespace simile::service {

// The payload fields of an answer, as field numbers of one snapshot's table.
struct PayloadSelection {
  bool none = false;
  bool all = false;
  std::vector<std::uint32_t> field_numbers;  // ascending, distinct; used when neither all nor none
};

// Finds the named fields; no names select all of them.
//   path        names the list in messages: "options.payload_fields"
//   collection  its name, for messages
// Errors: kInvalidArgument for a field that no row has, with the nearest field and a list of all.
absl::StatusOr<PayloadSelection> SelectPayload(std::string_view path, std::string_view collection,
                                               const std::vector<std::string>& names,
                                               bool with_payload,
                                               const data::PayloadTable& payload);

// The selected fields of a row, in the order of its line.
PayloadObject ReadSelected(const data::PayloadTable& payload, Row row,
                           const PayloadSelection& selection);

}  // namespace simile::service
