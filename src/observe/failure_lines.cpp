#include "observe/failure_lines.h"

#include <array>
#include <utility>

namespace simile::observe {

FailureLines::FailureLines(const Logger& log, const Clock& clock, std::string_view left_out,
                           bool always)
    : log_(log),
      clock_(clock),
      left_out_(left_out),
      always_(always),
      counts_(base::ErrorReasons().size()) {}

bool FailureLines::Admits(base::ErrorReason reason) {
  const auto second =
      std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch());
  const std::lock_guard lock(mutex_);
  Count& count = counts_[static_cast<std::size_t>(reason)];
  if (count.second != second) {
    count.second = second;
    count.lines = 0;
  }
  if (count.lines == kLinesPerSecond) {
    ++count.left_out;
    return false;
  }
  ++count.lines;
  return true;
}

void FailureLines::ReportLeftOut() {
  for (const base::ErrorReasonInfo& info : base::ErrorReasons()) {
    std::uint64_t left_out = 0;
    {
      const std::lock_guard lock(mutex_);
      left_out = std::exchange(counts_[static_cast<std::size_t>(info.reason)].left_out, 0);
    }
    if (left_out == 0) continue;
    const std::array<LogField, 2> fields = {LogField("reason", info.name),
                                            LogField("requests", left_out)};
    if (always_) {
      log_.WriteAlways(left_out_, fields);
    } else {
      log_.Write(LogLevel::kWarning, left_out_, fields);
    }
  }
}

}  // namespace simile::observe
