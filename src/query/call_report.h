#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "simile/row_mask.h"

namespace simile::query {

// What a call is told of one of its queries beside its answer.
struct QueryReport {
  absl::Status status;             // why it cannot be answered
  std::vector<std::string> notes;  // what of it has no effect, one sentence each
  std::uint32_t seen_count = 0;    // of a query by a user: items of the call that the user saw
  // With partial: why its page cannot be answered, unless the query has an error on every page.
  absl::Status past_reach = absl::OkStatus();
};

// What a call is told of its queries and of what applies to all of them.
struct CallReport {
  std::vector<QueryReport> queries;  // [queries of the request]
  std::vector<std::string> notes;    // what of the call's options has no effect
  // The rows that a query without a filter and without exclusions may return; null for all.
  std::shared_ptr<const RowMask> unfiltered = nullptr;
};

}  // namespace simile::query
