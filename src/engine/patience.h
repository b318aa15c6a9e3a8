#pragma once

#include <absl/status/status.h>

#include "engine/search_task.h"
#include "simile/clock.h"

namespace simile::engine {

// Whether anybody still waits for a task's answer: asked between two pieces of long work. Borrows
// both.
class Patience {
 public:
  Patience(const SearchTask& task, const Clock& clock) : task_(task), clock_(clock) {}

  // Errors: kCancelled when the caller is gone, kDeadlineExceeded when it is too late.
  absl::Status Check() const {
    if (task_.cancelled && task_.cancelled()) {
      return absl::CancelledError("the caller gave up before the answer was found");
    }
    if (clock_.Now() >= task_.deadline) {
      return absl::DeadlineExceededError("the deadline passed before the answer was found");
    }
    return absl::OkStatus();
  }

 private:
  const SearchTask& task_;
  const Clock& clock_;
};

}  // namespace simile::engine
