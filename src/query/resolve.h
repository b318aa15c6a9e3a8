#pragma once

#include <span>
#include <string_view>

#include <absl/status/status.h>

#include "engine/search/search_task.h"
#include "engine/snapshots/snapshot.h"
#include "query/query_request.h"
#include "simile/clock.h"

namespace simile::query {

// Resolves ids to vectors and rows of one snapshot: fills the task's queries and vectors.
// A vector is brought to unit length for cosine and used as given for dot; items and users are
// stored that way already. The resolved k is offset + k, at most the collection's rows (the
// field's keywords, for groups); the service drops the first `offset`.
//   shared_exclude_ids  excluded from every query beside its own; looked up once
// REQUIRES: k >= 1 and the bounds of simile::Limits, checked by the service.
// Errors: kNotFound names the id, the nearest known one and the query's index; kFailedPrecondition
//         for a user of a collection without profiles; kInvalidArgument for a vector of another
//         dimension, a non-finite number, a length outside 2^-60..2^60, vectors that cancel each
//         other out, a field that cannot be grouped or ordered by, or a wrong filter, whose message
//         continues with `filter, column N: `; kDeadlineExceeded and kCancelled when the task ends
//         before its filters are evaluated. Messages start with `queries[i]` when there is more
//         than one query. After an error the task's queries are not to be used.
// Cost: O(vectors * dim + exclusions * log), and evaluating the filters that are not cached.
absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests,
                            std::span<const std::string_view> shared_exclude_ids,
                            const Clock& clock, engine::SearchTask& task);

}  // namespace simile::query
