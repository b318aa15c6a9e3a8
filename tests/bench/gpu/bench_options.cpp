#include "bench/gpu/card.h"
#include "simile/clock.h"

namespace simile::bench::gpu {

backend::GpuOptions BenchOptions() {
  static const RealClock clock;
  backend::GpuOptions options;
  options.memory_fraction = 0.95;
  options.batch_timeout = std::chrono::minutes(1);
  options.clock = &clock;
  return options;
}

}  // namespace simile::bench::gpu
