#pragma once

#include <string>

#include <absl/status/status.h>

#include "recommend/query_request.h"
#include "simile/limits.h"

namespace simile::v1 {
class Query;
}

namespace simile::service {

// What a query is made from: vector, id, user, examples or blend.
//   path          "queries[3]"
//   exclude_seen  what holds for a query that has seen anything
// Errors: kInvalidArgument naming the field. Pure; O(size of the query).
absl::Status SetTarget(const std::string& path, const v1::Query& from, bool exclude_seen,
                       const Limits& limits, recommend::QueryRequest& query);

}  // namespace simile::service
