#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/executor.h"
#include "engine/snapshot.h"

namespace simile::recommend {

// What a query is made from.
struct ByVector {
  std::vector<float> values;
};
struct ByItem {
  std::string id;  // its own row is left out of the answer
};
struct ByUser {
  std::string id;
  bool exclude_seen = false;  // leave out the rows the user has interacted with
};

// A query as a caller means it, protobuf left behind.
struct QueryRequest {
  std::variant<ByVector, ByItem, ByUser> target;
  std::uint32_t k = 10;
  std::uint32_t offset = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  // Rows never returned. An id the collection does not have excludes nothing: callers keep long
  // lists of what a user has dismissed, and items disappear from collections.
  std::vector<std::string> exclude_ids;
  std::string filter;  // rows that may be returned; empty lets every row pass
};

// From ids to vectors and rows, against one snapshot: fills the task's queries [n, dim] and specs.
// A vector is brought to unit length for cosine and used as given for dot; items and users are
// stored that way already. The spec's k is offset + k, at most the collection's rows; the service
// drops the first `offset` hits.
// REQUIRES: k >= 1 and the bounds of simile::Limits, checked by the service.
// Errors: kNotFound names the id, the nearest known one and the query's index; kFailedPrecondition
//         for a user of a collection without profiles; kInvalidArgument for a vector of another
//         dimension, a non-finite number, a length outside 2^-60..2^60, or a filter that is not
//         right, whose message goes on with `filter, column N: `; kDeadlineExceeded and kCancelled
//         when the task is over before its filters are evaluated. Messages start with
//         `queries[i]` when there is more than one query. After an error the task's queries and
//         specs are not to be used.
// Cost: O(n * dim + exclusions * log), and the evaluation of filters that have not been asked of
// late.
absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const Clock& clock,
                            engine::SearchTask& task);

}  // namespace simile::recommend
