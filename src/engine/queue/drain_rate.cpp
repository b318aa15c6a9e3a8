#include "engine/queue/drain_rate.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace simile::engine {

void DrainRate::AddBatch(std::uint64_t search_count, Clock::Duration duration) {
  assert(search_count > 0);
  search_count_ = search_count_ / 2 + static_cast<double>(search_count);
  duration_ = duration_ / 2 + Milliseconds(duration);
}

std::chrono::milliseconds DrainRate::TimeFor(std::uint64_t search_count) const {
  if (search_count_ == 0) return kUnmeasured;
  const Milliseconds time = duration_ * (static_cast<double>(search_count) / search_count_);
  const Milliseconds bounded = std::clamp(time, Milliseconds(kShortest), Milliseconds(kLongest));
  return std::chrono::milliseconds(std::lround(bounded.count()));
}

}  // namespace simile::engine
