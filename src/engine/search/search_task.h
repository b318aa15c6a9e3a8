#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <absl/status/status.h>
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

// How long a caller can wait.
enum class Priority : std::uint8_t {
  kOnline,
  kBulk,  // runs in the time that other calls leave
};

// The queries of a call, for the engine. All queries of a call are answered from one snapshot.
struct SearchTask {
  SnapshotPtr snapshot;
  std::vector<ResolvedQuery> queries;
  // [vectors of all queries, one after the other; dim] fp32, padded; unit length for cosine
  data::Matrix vectors;
  Priority priority = Priority::kOnline;
  // Whether the receipt should have the device's own time.
  bool time_device = false;
  // Submitted by SearchTimes, without a caller. Takes space in the queue like any task, but is not
  // counted in the totals of queries, batches and refusals.
  bool is_measurement = false;
  // The bytes of the request that are kept until it is answered.
  std::uint64_t request_bytes = 0;
  // The estimated size of the reply. A thread of its own builds large replies, so that they delay
  // no small reply.
  std::uint64_t reply_bytes_estimate = 0;
  Clock::TimePoint arrived_at;
  Clock::TimePoint deadline;  // TimePoint::max() for none
  // Stopped when the caller is gone. A waiting task then leaves the queue at once; a running task
  // ends at its next check (call_context.h). May be empty.
  std::stop_token cancelled;
  // Called exactly once, by a completer or by Executor::RunHere on its calling thread. Never called
  // from Submit or while a lock is held; a task that Submit refused is dropped without the call.
  // May Submit, must not Stop.
  // Errors: QUEUE_FULL (of a gathered task), DEADLINE_EXCEEDED (expired in the queue or between two
  //         pieces of work), CANCELLED, OUT_OF_MEMORY, STOPPING, and the backend's own.
  std::function<void(absl::StatusOr<SearchAnswer>)> done;
};

// A task and its progress. Used by the thread that runs it.
struct TaskProgress {
  const SearchTask* task = nullptr;  // borrowed
  std::vector<QueryResult> results;  // [queries], once it has begun
  std::size_t answered = 0;          // queries
  std::size_t next_query = 0;        // the first that has not begun
  std::size_t next_vector = 0;       // the first vector of next_query
  absl::Status status;               // why it cannot be answered
  std::uint32_t batch_size = 0;      // queries in the largest search with this task
  // In the slice under way: whether the task was run, and the work done for hard queries.
  bool in_slice = false;
  std::uint32_t searches_in_slice = 0;
  Clock::Duration work_in_slice{};  // besides searches

  bool begun() const { return !results.empty(); }
  bool ended() const { return !status.ok() || (begun() && answered == results.size()); }
};

}  // namespace simile::engine
