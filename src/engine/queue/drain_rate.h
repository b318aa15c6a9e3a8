#pragma once

#include <chrono>
#include <cstdint>

#include "simile/clock.h"

namespace simile::engine {

// How fast the queue empties, measured on the latest batches: the one before the last counts half,
// and so on. Not thread-safe.
class DrainRate {
 public:
  // A batch of this many searches took this long.
  void AddBatch(std::uint64_t search_count, Clock::Duration duration);

  // How long this many searches take, within kShortest and kLongest; kUnmeasured before a batch.
  std::chrono::milliseconds TimeFor(std::uint64_t search_count) const;

  static constexpr std::chrono::milliseconds kShortest{10};
  static constexpr std::chrono::milliseconds kLongest{2'000};
  static constexpr std::chrono::milliseconds kUnmeasured{100};

 private:
  using Milliseconds = std::chrono::duration<double, std::milli>;
  double search_count_ = 0;
  Milliseconds duration_{0};
};

}  // namespace simile::engine
