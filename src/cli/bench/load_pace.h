#pragma once

#include <cstdint>
#include <optional>

#include "cli/bench/latency_histogram.h"
#include "cli/bench/random_draw.h"

namespace simile::cli::bench {

// How much load.
struct Load {
  // Calls under way at any time: kept at this number without a rate, at most this many with one.
  std::uint32_t in_flight = 1;
  // Calls a second, sent at random times whether or not earlier ones have been answered. Unset: a
  // call is sent when another is answered.
  std::optional<double> rate;
};

// Decides when calls are sent. A closed loop (without a rate) sends whenever fewer than `in_flight`
// calls are under way. An open loop draws arrivals of a Poisson process, the sum of many
// independent callers: its calls are due at these times however slow the answers are. A call that
// is sent late, because too many are under way, keeps its intended time, from which its latency
// counts.
//
// Times are since the run's start and given by the caller. Not thread-safe.
class LoadPace {
 public:
  LoadPace(const Load& load, std::uint64_t seed);

  // When the next call is due: in the past when it is late. Nothing while `in_flight` calls are
  // under way.
  //   now  a closed loop's calls are due at once
  std::optional<Nanoseconds> NextDue(Nanoseconds now) const;
  // The next call is sent now. Returns its intended time. REQUIRES: NextDue(now) <= now.
  Nanoseconds Send(Nanoseconds now);
  void Complete();
  std::uint32_t in_flight() const { return in_flight_; }

  // Moves past the next arrival before `end` without sending it, and returns its time; nothing when
  // there is none. For counting, after a run, the calls that were due and never sent.
  std::optional<Nanoseconds> SkipBefore(Nanoseconds end);

 private:
  void DrawArrival();

  const Load load_;
  RandomDraw random_;
  std::uint32_t in_flight_ = 0;
  double arrival_ns_ = 0;  // the next one's time; a sum of doubles loses less than 1 us in a year
};

}  // namespace simile::cli::bench
