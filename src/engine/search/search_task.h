#pragma once

#include <functional>
#include <vector>

#include <absl/status/statusor.h>

#include "data/matrix.h"
#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"
#include "observe/receipt.h"
#include "simile/clock.h"

namespace simile::engine {

struct SearchAnswer {
  std::vector<QueryResult> results;  // [queries]
  observe::Receipt receipt;
};

// What a call asks of the engine. All queries of a call are answered from one snapshot.
struct SearchTask {
  SnapshotPtr snapshot;
  std::vector<ResolvedQuery> queries;
  // [vectors of all queries, one after the other; dim] fp32, padded; unit length for cosine
  data::Matrix vectors;
  Clock::TimePoint arrived_at;
  Clock::TimePoint deadline;  // TimePoint::max() for none
  // Called on the dispatch thread just before the pass, and between the rounds of queries that
  // need several: a call that is gone costs no compute. May be empty.
  std::function<bool()> cancelled;
  // Called exactly once, from the completion thread, never from Submit; a task that Submit refused
  // is dropped without the call. May Submit, must not Stop or Drain.
  // Errors: DEADLINE_EXCEEDED (expired in the queue, where nothing was computed, or between two
  //         rounds), CANCELLED, OUT_OF_MEMORY, STOPPING, and the backend's own.
  std::function<void(absl::StatusOr<SearchAnswer>)> done;
};

}  // namespace simile::engine
