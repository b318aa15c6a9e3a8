#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/error_detail.h"
#include "observe/log.h"
#include "simile/clock.h"

namespace simile::observe {

// Bounds the lines about failed calls, because callers can make any number of calls that fail. For
// each reason the first failures in a second get a line each. One line a second says how many
// failures got none. Owned by wiring; safe to use from any thread.
class FailureLines {
 public:
  static constexpr std::uint64_t kLinesPerSecond = 10;  // of each reason

  //   log, clock  borrowed
  //   left_out    the message of the lines that say how many failures got none; a literal
  //   always      whether these lines are written even when the log's level drops warnings
  FailureLines(const Logger& log, const Clock& clock,
               std::string_view left_out = "more requests failed, without a line each",
               bool always = false);

  // Whether a call that fails now, for this reason, gets a line. If not, it is counted.
  bool Admits(base::ErrorReason reason);
  // Logs, for each reason, how many calls got no line since the last report. To be called once a
  // second and before the end.
  void ReportLeftOut();

 private:
  struct Count {
    std::chrono::seconds second{-1};  // to which `lines` belongs
    std::uint64_t lines = 0;
    std::uint64_t left_out = 0;  // since the last report
  };

  const Logger& log_;
  const Clock& clock_;
  const std::string_view left_out_;
  const bool always_;
  std::mutex mutex_;           // guards counts_
  std::vector<Count> counts_;  // by ErrorReason
};

}  // namespace simile::observe
