#include "net/frame_rates.h"

#include <cstddef>
#include <utility>

namespace simile::net {

// What a client may send without calls, and how much more for each HEADERS or DATA frame that the
// server sends it: clients measure bandwidth by pings, and say that they have read something.
struct FrameRates::Allowance {
  Pace pace;
  double by_frame = 0;
  Violation violation = Violation::kNone;
};

const std::array<FrameRates::Allowance, FrameRates::kKinds> FrameRates::kAllowances = {{
    {{1'000, 100}, 1, Violation::kPings},
    {{200, 50}, 0, Violation::kSettings},
    {{1'000, 100}, 0, Violation::kPriorities},
    {{10'000, 1'000}, 2, Violation::kWindowUpdates},
    {{100, 10}, 0, Violation::kUnknownFrames},
}};

FrameRates::FrameRates(const Clock& clock)
    : clock_(clock),
      buckets_([now = clock.Now()]<std::size_t... kind>(std::index_sequence<kind...>) {
        return std::array{TokenBucket(kAllowances[kind].pace, now)...};
      }(std::make_index_sequence<kKinds>())) {}

Violation FrameRates::Count(Kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return buckets_.at(index).Spend(clock_) ? Violation::kNone : kAllowances.at(index).violation;
}

void FrameRates::OnFrameSent() {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const double more = kAllowances.at(kind).by_frame;
    if (more > 0) buckets_.at(kind).Give(more);
  }
}

}  // namespace simile::net
