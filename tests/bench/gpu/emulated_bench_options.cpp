#include "backend/cuda/emulated_gpu.h"
#include "bench/gpu/card.h"

namespace simile::bench::gpu {

// A small emulated H200, for dry runs (gpu_dry_run.py).
backend::GpuOptions BenchOptions() {
  tests::ResetEmulatedGpu(tests::CardOf(0), 1, std::size_t{48} << 20);
  return tests::EmulatedOptions();
}

}  // namespace simile::bench::gpu
