#include "backend/cuda/emulated_gpu.h"

#include <array>
#include <chrono>
#include <string>

#include "backend/accelerator_plugin.h"
#include "backend/build_id.h"
#include "emulated_cuda/emulated_device.h"
#include "simile/clock.h"

extern "C" const SimilePlugin* simile_cuda_plugin();

namespace simile::tests {
namespace {

constexpr std::array kCards{
    EmulatedCard{"H200", 90, 227 * 1024, 4},
    EmulatedCard{"A100", 80, 163 * 1024, 3},
    EmulatedCard{"A5000", 86, 99 * 1024, 2},
    EmulatedCard{"T4", 75, 64 * 1024, 4},
};

constexpr std::array kCapabilities{
    EmulatedCard{"P4", 61, 48 * 1024, 2},       EmulatedCard{"V100", 70, 96 * 1024, 3},
    EmulatedCard{"T4", 75, 64 * 1024, 4},       EmulatedCard{"A100", 80, 163 * 1024, 3},
    EmulatedCard{"A5000", 86, 99 * 1024, 2},    EmulatedCard{"L4", 89, 99 * 1024, 2},
    EmulatedCard{"H100", 90, 227 * 1024, 4},    EmulatedCard{"B200", 100, 227 * 1024, 4},
    EmulatedCard{"RTX5090", 120, 99 * 1024, 3},
};

}  // namespace

std::span<const EmulatedCard> CardsByCapability() { return kCapabilities; }
const EmulatedCard& CardOf(std::size_t index) { return kCards[index % kCards.size()]; }
std::size_t CardCount() { return kCards.size(); }

void ResetEmulatedGpu(const EmulatedCard& card, std::uint64_t seed, std::size_t memory_bytes) {
  emulated_cuda::Options options;
  options.memory_bytes = memory_bytes;
  options.seed = seed;
  options.compute_capability = card.capability;
  options.multiprocessors = card.multiprocessors;
  options.shared_bytes_max = card.shared_bytes_max;
  options.quiet = true;
  emulated_cuda::ResetDevice(options);
}

backend::GpuOptions EmulatedOptions(ForcedStrategy strategy) {
  static const RealClock clock;
  backend::GpuOptions options;
  options.memory_fraction = 1;
  options.reserve_bytes = 0;
  options.batch_timeout = std::chrono::minutes(5);  // emulation is slow
  options.blas_libraries = {SIMILE_EMULATED_CUDA_FILE};
  options.clock = &clock;
  options.workspace = SmallWorkspace();
  Force(strategy, options);
  options.tuning.lent_hits_min = 64;  // small tests meet lent answers and copied ones
  return options;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedGpu(const backend::GpuOptions& options) {
  const SimilePlugin* plugin = simile_cuda_plugin();
  if (plugin->build_id != std::string(backend::kBuildId)) {
    return absl::InternalError("the emulated plug-in is of another build");
  }
  absl::StatusOr<std::unique_ptr<Backend>> backend = absl::UnknownError("not opened");
  plugin->open(&options, &backend);
  return backend;
}

}  // namespace simile::tests
