#include "backend/cuda/emulated_gpu.h"
#include "bench/gpu/card.h"

namespace simile::bench::gpu {

// A small emulated H200, for dry runs (gpu_dry_run.py), whose warps can keep the scores of 6,144
// rows.
backend::GpuOptions BenchOptions() {
  tests::EmulatedCard card = tests::CardOf(0);
  card.multiprocessors = 12;
  tests::ResetEmulatedGpu(card, 1, std::size_t{48} << 20);
  return tests::EmulatedOptions();
}

}  // namespace simile::bench::gpu
