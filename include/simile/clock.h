#pragma once

#include <chrono>
#include <cstdint>

namespace simile {

// The current time. Injected wherever a decision depends on time, so that tests can set it. Safe to
// call from any thread.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;  // monotonic: deadlines and durations
  virtual std::chrono::system_clock::time_point WallNow() const = 0;  // for people and logs
};

class RealClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::now();
  }
};

// The duration in whole microseconds, never negative: receipts carry unsigned numbers.
inline std::uint64_t Microseconds(Clock::Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

}  // namespace simile
