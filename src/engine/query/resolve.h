#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "engine/query/existing_items.h"
#include "engine/query/other_items.h"
#include "engine/query/query_request.h"
#include "engine/search/search_task.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Options that apply to all queries of a call.
struct CallOptions {
  std::string_view list = "queries";              // the request's repeated field, for errors
  std::span<const std::string_view> exclude_ids;  // besides each query's own; looked up once
  // The items that may be returned, looked up once; unset: all.
  std::optional<std::span<const std::string_view>> allow_ids;
  RequiredFilters required_filters;
  OtherCollections others = {};  // all other collections whose items the queries name
  bool partial = false;          // queries are answered even if others cannot be
  std::size_t first_index = 0;   // the first query's index in the list, for errors
};

// Resolves ids to vectors and rows of one snapshot: fills the task's queries and vectors, and notes
// in the report which queries and options have no effect.
// A vector is brought to unit length for cosine, unless it is marked as stored, and used as given
// for dot; items and users are stored that way already. The resolved k is offset + k, at most the
// collection's rows (the field's keywords, for groups); the service drops the first `offset`.
//   report  one entry for each query of the request; queries with an error in it are left out. With
//           options.partial an error of a query is written here, worded as if the query were alone,
//           and the query is left out of the task, which may then be empty. An error of the
//           options, with a field below `options.`, is returned either way
// REQUIRES: k >= 1 and the bounds of simile::Limits, checked by the service.
// Errors: ITEM_NOT_FOUND and USER_NOT_FOUND with the nearest known id, or with all unknown ids of
//         the call when there are several. No id is offered with a required filter, or when some
//         users do not exist for the caller. DIMENSION_MISMATCH; INVALID_FILTER;
//         OtherItems::Of's; UNKNOWN_PAYLOAD_FIELD; INVALID_FIELD for a non-finite number, a length
//         outside 2^-60..2^60 (0 is within for dot), an item that is not searchable, vectors that
//         cancel each other out, or a field that cannot be grouped or ordered by; work's. Messages
//         start with `queries[i]` when there is more than one query. After an error the task's
//         queries must not be used.
// Cost: O(vectors * dim + exclusions * log), and evaluating the filters that are not cached.
absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const CallOptions& options,
                            base::LongWork& work, engine::SearchTask& task, CallReport& report);

}  // namespace simile::engine
