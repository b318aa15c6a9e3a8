#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <absl/status/status.h>

#include "engine/search/search_task.h"
#include "simile/clock.h"

namespace simile::engine {

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
