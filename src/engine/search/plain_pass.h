#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/search/search_task.h"
#include "engine/search/search_workspace.h"
#include "simile/turn.h"

namespace simile::engine {

// A search that answers plain queries of several tasks and may be paused between its pieces. An
// object runs one search after the other and keeps its buffers. Used by the thread that leads.
class PlainPass {
 public:
  // The next queries of a task.
  struct Part {
    TaskProgress* task = nullptr;
    // Keeps alive what the search borrows, even when the task is given up.
    std::shared_ptr<const SearchTask> owner;
    std::size_t query_count = 0;
  };

  // Begins a search for these queries. Moves next_query of their tasks behind them.
  //   device_time  as SegmentSearch::set_device_time
  // REQUIRES: at least one; plain; all tasks have begun and pin the same snapshot.
  // Throws std::bad_alloc; no part is then kept.
  void Begin(std::span<const Part> parts, DeviceTime* device_time);
  // As SearchPass::Start, right after Begin. Without memory the search ends, and its tasks have the
  // error.
  bool Start();
  bool HasEnded() const { return workspace_.search.HasEnded(); }
  // Continues the search until the turn is over. Returns whether the search has ended. Then the
  // results are in the tasks, or each task has the error.
  // Errors: OUT_OF_MEMORY when there is no memory for the batch; the backend's own.
  absl::StatusOr<bool> Advance(const Turn& turn);
  // Gives a task up. The search ends when its last task is given up.
  void Drop(const TaskProgress& task);
  void End();

  bool under_way() const { return !parts_.empty(); }
  std::uint32_t batch_size() const { return static_cast<std::uint32_t>(workspace_.result.batch()); }
  const FallbackBackend& fallback() const { return workspace_.result.fallback(); }
  // The host bytes that the pass holds, including tasks that were given up.
  std::uint64_t bytes() const {
    return workspace_.search.bytes() + workspace_.result.buffer_bytes() + dropped_bytes_;
  }
  void FreeBuffers() { workspace_.FreeBuffers(); }

 private:
  struct Queries {
    Part part;  // has no task after the task was given up
    std::size_t first = 0;
  };

  void Fail(const absl::Status& status);
  void ReadResults();
  // Reads the results of the batch, starting at this search.
  void ReadHits(std::size_t search, std::span<QueryResult> query_results);

  std::vector<Queries> parts_;
  SearchWorkspace workspace_;
  std::uint64_t dropped_bytes_ = 0;  // of tasks that were given up, kept to the end
  std::vector<QuerySpec> specs_;     // of a single part, whose vectors are not copied
};

}  // namespace simile::engine
