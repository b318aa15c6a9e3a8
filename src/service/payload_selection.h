#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/payload_table.h"
#include "filter/payload_view.h"
#include "service/request_fields.h"
#include "simile/limits.h"

namespace simile::v1 {
class PayloadSelector;
}

namespace simile::service {

// The payload fields of an answer, as field numbers of one snapshot's table.
struct PayloadSelection {
  bool none = false;
  bool all = false;                          // objects as a whole
  std::vector<std::uint32_t> field_numbers;  // ascending, distinct; used when neither all nor none

  bool Has(std::uint32_t field_number) const {
    return all || std::binary_search(field_numbers.begin(), field_numbers.end(), field_number);
  }
};

// Checks of a selector what can be checked without the collection.
// Errors: INVALID_FIELD for an unknown selection, for fields named beside one, and for too many.
absl::Status CheckPayloadSelector(const FieldPath& field, const v1::PayloadSelector& selector,
                                  const Limits& limits);

// Finds the fields that a selector names.
//   field       of the selector, for errors
//   collection  its name, for messages
//   fields      that exist for the caller
// REQUIRES: CheckPayloadSelector allows it.
// Errors: UNKNOWN_PAYLOAD_FIELD for a field that no row of the caller has, with the nearest one and
// a list of all.
absl::StatusOr<PayloadSelection> SelectPayload(const FieldPath& field, std::string_view collection,
                                               const v1::PayloadSelector& selector,
                                               const data::PayloadTable& payload,
                                               const filter::PayloadView& fields);

}  // namespace simile::service
