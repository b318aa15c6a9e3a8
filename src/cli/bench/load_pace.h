#pragma once

#include <cstdint>
#include <optional>

#include "cli/bench/latency_histogram.h"
#include "cli/bench/random_draw.h"

namespace simile::cli::bench {

// How much load to send.
struct Load {
  // Calls in flight. Without a rate always this many; with a rate at most this many.
  std::uint32_t in_flight = 1;
  // Calls per second, sent at random times even if earlier calls are not answered yet. Unset: each
  // answer sends the next call.
  std::optional<double> rate;
};

// Decides when calls are sent. A closed loop has no rate and sends whenever fewer than `in_flight`
// calls are in flight. An open loop draws arrival times from a Poisson process, which models many
// independent callers. Its calls are due at these times however slow the answers are. A call that
// is sent late, because too many calls are in flight, keeps its intended time; its latency counts
// from there.
// All times are given by the caller and count from the run's start. Not thread-safe.
class LoadPace {
 public:
  LoadPace(const Load& load, std::uint64_t seed);

  // When the next call is due; a time in the past means that the call is late. Nothing while
  // `in_flight` calls are in flight.
  //   now  returned by a closed loop, whose calls are always due
  std::optional<Nanoseconds> NextDue(Nanoseconds now) const;
  // Records that the next call is sent now, and returns its intended time. REQUIRES: NextDue(now)
  // <= now.
  Nanoseconds Send(Nanoseconds now);
  void Complete();
  std::uint32_t in_flight() const { return in_flight_; }

  // Skips the next arrival before `end` without sending it, and returns its time; nothing if none
  // is left. Counts, after a run, the calls that were due and never sent.
  std::optional<Nanoseconds> SkipBefore(Nanoseconds end);

 private:
  void DrawArrival();

  const Load load_;
  RandomDraw random_;
  std::uint32_t in_flight_ = 0;
  // Time of the next arrival; a sum of doubles loses less than 1 us per year.
  double arrival_ns_ = 0;
};

}  // namespace simile::cli::bench
