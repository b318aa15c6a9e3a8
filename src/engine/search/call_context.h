#pragma once

#include <stop_token>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "engine/search/search_task.h"
#include "simile/clock.h"

namespace simile::engine {

// Tells whether a caller still waits for the answer. Checked between two pieces of long work.
// Borrows the clock.
class CallContext {
 public:
  //   deadline  TimePoint::max() for none
  CallContext(std::stop_token cancelled, Clock::TimePoint deadline, const Clock& clock)
      : cancelled_(std::move(cancelled)), deadline_(deadline), clock_(clock) {}
  CallContext(const SearchTask& task, const Clock& clock)
      : CallContext(task.cancelled, task.deadline, clock) {}

  //   step  the step that the call has not reached yet, for the message
  // Errors: CANCELLED when the caller is gone, DEADLINE_EXCEEDED when its deadline has passed.
  absl::Status Check(std::string_view step = "the answer was found") const {
    if (cancelled_.stop_requested()) {
      return base::Error(base::ErrorReason::kCancelled,
                         fmt::format("the caller gave up before {}", step));
    }
    if (clock_.Now() >= deadline_) {
      return base::Error(base::ErrorReason::kDeadlineExceeded,
                         fmt::format("the deadline passed before {}", step));
    }
    return absl::OkStatus();
  }

 private:
  const std::stop_token cancelled_;
  const Clock::TimePoint deadline_;
  const Clock& clock_;
};

}  // namespace simile::engine
