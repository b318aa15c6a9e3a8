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
  kBulk,  // runs on what the other calls leave
};

// What a call asks of the engine. All queries of a call are answered from one snapshot.
struct SearchTask {
  SnapshotPtr snapshot;
  std::vector<ResolvedQuery> queries;
  // [vectors of all queries, one after the other; dim] fp32, padded; unit length for cosine
  data::Matrix vectors;
  Priority priority = Priority::kOnline;
  // Whether the receipt is to have the device's own time.
  bool time_device = false;
  // Submitted by SearchTimes, for no caller. It takes space in the queue as any task does; the
  // totals of queries, batches and refusals leave it out.
  bool is_measurement = false;
  // Of what is kept of the request until it is answered.
  std::uint64_t request_bytes = 0;
  // About how large the reply will be: a large one is built where it delays no small one.
  std::uint64_t reply_bytes_estimate = 0;
  Clock::TimePoint arrived_at;
  Clock::TimePoint deadline;  // TimePoint::max() for none
  // Stopped when the caller is gone: a task that waits then leaves the queue at once, one that runs
  // at its next check (call_context.h). May be empty.
  std::stop_token cancelled;
  // Called exactly once, never from Submit and never while a lock is held; a task that Submit
  // refused is dropped without the call. Called by a completer, or by Executor::RunHere on the
  // thread that called it. May Submit, must not Stop.
  // Errors: QUEUE_FULL (of a gathered task), DEADLINE_EXCEEDED (expired in the queue, where nothing
  //         was computed, or between two pieces of work), CANCELLED, OUT_OF_MEMORY, STOPPING, and
  //         the backend's own.
  std::function<void(absl::StatusOr<SearchAnswer>)> done;
};

// A task and how far it is answered. Used by the thread that runs it.
struct TaskProgress {
  const SearchTask* task = nullptr;  // borrowed
  std::vector<QueryResult> results;  // [queries], once it has begun
  std::size_t answered = 0;          // queries
  std::size_t next_query = 0;        // the first that has not begun
  std::size_t next_vector = 0;       // the first of that query's
  absl::Status status;               // why it cannot be answered
  std::uint32_t batch_size = 0;      // queries in the largest search that it was part of
  // In the slice under way: whether something of it was run, and of hard queries what.
  bool in_slice = false;
  std::uint32_t searches_in_slice = 0;
  Clock::Duration work_in_slice{};  // beside searches

  bool begun() const { return !results.empty(); }
  bool ended() const { return !status.ok() || (begun() && answered == results.size()); }
};

}  // namespace simile::engine
