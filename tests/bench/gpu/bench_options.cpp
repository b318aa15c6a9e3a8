#include "bench/gpu/card.h"
#include "simile/clock.h"

namespace simile::bench::gpu {

backend::GpuOptions BenchOptions() {
  static const RealClock clock;
  backend::GpuOptions options;
  options.memory_fraction = 0.95;
  // The longest pass takes a tenth of a second. Twice this is less than any step's limit
  // (step_lists.py), so that a program names the kernel that hangs before it is ended.
  options.batch_timeout = std::chrono::seconds(10);
  options.clock = &clock;
  return options;
}

}  // namespace simile::bench::gpu
