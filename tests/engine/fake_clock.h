#pragma once

#include <atomic>
#include <chrono>

#include "simile/clock.h"

namespace simile::engine {

// A clock that only the test advances.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_.load())); }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  }
  void Advance(Duration duration) { now_ += duration.count(); }

 private:
  std::atomic<Duration::rep> now_{Duration(std::chrono::hours(1)).count()};
};

}  // namespace simile::engine
