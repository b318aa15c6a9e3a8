#pragma once

#include <string_view>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "engine/search/search_task.h"
#include "simile/clock.h"

namespace simile::engine {

// Whether a task's caller still waits for the answer: checked between two pieces of long work.
// Borrows both.
class CallContext {
 public:
  CallContext(const SearchTask& task, const Clock& clock) : task_(task), clock_(clock) {}

  //   step  what the call has not reached yet, for the message
  // Errors: CANCELLED when the caller is gone, DEADLINE_EXCEEDED when its deadline has passed.
  absl::Status Check(std::string_view step = "the answer was found") const {
    if (task_.cancelled && task_.cancelled()) {
      return base::Error(base::ErrorReason::kCancelled,
                         fmt::format("the caller gave up before {}", step));
    }
    if (clock_.Now() >= task_.deadline) {
      return base::Error(base::ErrorReason::kDeadlineExceeded,
                         fmt::format("the deadline passed before {}", step));
    }
    return absl::OkStatus();
  }

 private:
  const SearchTask& task_;
  const Clock& clock_;
};

}  // namespace simile::engine
