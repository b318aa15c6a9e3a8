#include "app/idle_memory.h"

#include <algorithm>
#include <utility>

namespace simile::app {
namespace {

// Of one processor, for calls of health, scrapes and a few searches a second.
constexpr int kIdlePercentMax = 5;
constexpr std::chrono::seconds kIdleTime{5};
// Less is not worth a pass over the allocator's arenas.
constexpr std::uint64_t kGrowthBytesMin = 16U << 20;

}  // namespace

bool IdleMemory::IsDue(const Reading& now) {
  const std::optional<Reading> last = std::exchange(last_, now);
  if (!last) {
    idle_since_ = now.taken_at;
    least_bytes_ = now.resident_bytes;
    return false;
  }
  least_bytes_ = std::min(least_bytes_, now.resident_bytes);
  const Clock::Duration passed = now.taken_at - last->taken_at;
  if ((now.cpu_time - last->cpu_time) * 100 > passed * kIdlePercentMax) {
    idle_since_ = now.taken_at;
  }
  return now.taken_at - idle_since_ >= kIdleTime &&
         now.resident_bytes - least_bytes_ >= kGrowthBytesMin;
}

}  // namespace simile::app
