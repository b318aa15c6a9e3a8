#pragma once

#include <span>

#include <absl/status/status.h>

#include "engine/executor.h"
#include "engine/snapshot.h"
#include "recommend/query_request.h"
#include "simile/clock.h"

namespace simile::recommend {

// From ids to vectors and rows, against one snapshot: fills the task's questions and vectors.
// A vector is brought to unit length for cosine and used as given for dot; items and users are
// stored that way already. The question's k is offset + k, at most the collection's rows (the
// field's keywords, for groups); the service drops the first `offset`.
// REQUIRES: k >= 1 and the bounds of simile::Limits, checked by the service.
// Errors: kNotFound names the id, the nearest known one and the query's index; kFailedPrecondition
//         for a user of a collection without profiles; kInvalidArgument for a vector of another
//         dimension, a non-finite number, a length outside 2^-60..2^60, vectors that cancel each
//         other out, a field that cannot be grouped or ordered by, or a filter that is not right,
//         whose message goes on with `filter, column N: `; kDeadlineExceeded and kCancelled
//         when the task is over before its filters are evaluated. Messages start with
//         `queries[i]` when there is more than one query. After an error the task's questions are
//         not to be used.
// Cost: O(vectors * dim + exclusions * log), and the evaluation of filters that have not been asked
// of late.
absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const Clock& clock,
                            engine::SearchTask& task);

}  // namespace simile::recommend
