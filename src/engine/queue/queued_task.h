#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include <absl/status/statusor.h>

#include "engine/queue/schedule.h"
#include "engine/search/search_task.h"
#include "engine/search/task_progress.h"
#include "simile/clock.h"
#include "simile/query.h"

namespace simile::engine {

// A task in the executor, from Submit until its answer is handed out. Has space for all that it
// will need on its way: from Submit on nothing that happens to it may lack memory. Destroyed
// without the executor's mutex, since its stop callback may just wait for that.
struct QueuedTask {
  std::shared_ptr<SearchTask> task;  // shared with the pass that answers it
  std::uint64_t id = 0;              // in order of arrival
  Schedule::Request request;
  std::uint64_t bytes = 0;  // that it holds
  bool large = false;       // takes much of the queue, so it waits beside it (Admit)
  bool large_reply = false;
  bool begun = false;  // a slice of it runs or has run
  unsigned slices_under_way = 0;
  bool wait_reported = false;       // to the observer
  Clock::TimePoint began_at;        // its first slice
  Clock::Duration compute{};        // all its slices
  Clock::TimePoint computed_until;  // its last slice, which another one may overlap
  DeviceTime device_time;           // in them, where it asks for it
  TaskProgress progress;
  absl::StatusOr<SearchAnswer> answer;  // once it is finished
  std::unique_ptr<QueuedTask> next;     // of its list (task_list.h)
  // Last: it calls the executor as soon as the task's caller is gone.
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

}  // namespace simile::engine
