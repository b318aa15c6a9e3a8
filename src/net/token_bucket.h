#pragma once

#include <algorithm>
#include <chrono>

#include "simile/clock.h"

namespace simile::net {

// How often something may happen: `burst` times at once, `per_second` times in the long run.
struct Pace {
  double burst = 0;
  double per_second = 0;
};

// Limits events to a pace: each event takes a token. Full at the start. Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(const Pace& pace, Clock::TimePoint now)
      : pace_(pace), tokens_(pace.burst), filled_at_(now) {}

  // Takes a token. False when there is none: the event happens too often. Reads the clock only when
  // the bucket is empty.
  bool Spend(const Clock& clock) {
    if (tokens_ < 1) Fill(clock.Now());
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  void Give(double tokens) { tokens_ = std::min(pace_.burst, tokens_ + tokens); }
  void Fill(Clock::TimePoint now) {
    const std::chrono::duration<double> passed = now - filled_at_;
    filled_at_ = now;
    Give(passed.count() * pace_.per_second);
  }
  void SetPace(const Pace& pace) {
    pace_ = pace;
    tokens_ = std::min(pace_.burst, tokens_);
  }
  // How long until there is a token again.
  std::chrono::duration<double> Wait() const {
    return std::chrono::duration<double>(std::max(0.0, 1 - tokens_) / pace_.per_second);
  }
  bool full() const { return tokens_ >= pace_.burst; }

 private:
  Pace pace_;
  double tokens_;
  Clock::TimePoint filled_at_;
};

}  // namespace simile::net
