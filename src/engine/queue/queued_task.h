#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "engine/queue/schedule.h"
#include "engine/search/search_task.h"
#include "engine/search/task_progress.h"
#include "simile/clock.h"

namespace simile::engine {

// A task in the executor, from Submit until its answer is handed out. Destroyed without the
// executor's mutex, since its stop callback may just wait for that.
struct QueuedTask {
  std::unique_ptr<SearchTask> task;
  std::uint64_t id = 0;  // in order of arrival
  Schedule::Request request;
  std::uint32_t query_count = 0;  // its searches: a query with several vectors needs one for each
  std::uint64_t bytes = 0;        // that it holds
  bool oversize = false;          // larger than the queue's free part
  bool large_reply = false;
  bool begun = false;         // a slice of it runs or has run
  Clock::TimePoint began_at;  // its first slice
  Clock::Duration compute{};  // all its slices
  TaskProgress progress;
  // Last: it calls the executor as soon as the task's caller is gone.
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

}  // namespace simile::engine
