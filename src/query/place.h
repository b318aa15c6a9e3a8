#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::query {

// Where in a request an error is: a query, or a part of one. Formatted only when there is an error,
// so that resolving a valid call formats nothing. Borrows its names.
struct Place {
  std::string_view list = "queries";  // the request's repeated field
  std::size_t index = 0;
  bool alone = true;      // messages do not name a call's only query
  std::string_view part;  // of the query: "blend", "examples.positive"; empty for the whole query
  int part_index = -1;    // in a repeated part; -1 for none
};

// An error of the field `leaf` of a place; of the place itself when it is empty.
//   field    "queries[3].examples.positive[0].id"
//   message  "queries[3]: examples.positive[0]: what"
absl::Status ErrorAt(const Place& place, std::string_view leaf, base::ErrorReason reason,
                     std::string_view what);
// The same error as one of the field `leaf` of a place.
absl::Status AtPlace(const Place& place, std::string_view leaf, const absl::Status& error);

}  // namespace simile::query
