#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "query/query_request.h"
#include "service/field_path.h"
#include "simile/limits.h"

namespace simile::v1 {
class Query;
}

namespace simile::service {

// Sets the query's target: vector, item, user, examples or blend.
//   path          "queries[3]"
//   sent_data     data of the packed vector if the message lacks it; else empty
//   collection    the searched one
//   exclude_seen  for a target with a user
// Errors: INVALID_FIELD. Pure; O(size of the query).
absl::Status SetTarget(const FieldPath& path, const v1::Query& from, std::string_view sent_data,
                       std::string_view collection, bool exclude_seen, const Limits& limits,
                       query::QueryRequest& query);

}  // namespace simile::service
