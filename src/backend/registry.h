#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "backend/failover_backend.h"
#include "backend/gpu_options.h"
#include "backend/gpu_search.h"
#include "simile/backend.h"

namespace simile::backend {

// auto: the GPU if it can be used, else the CPU, with the reason. gpu: the GPU, or refuse to start.
// cpu: the CPU, without looking for a GPU.
enum class Preference : std::uint8_t { kAuto, kGpu, kCpu };

// int8: int8 codes find candidates under a proven bound, fp32 scores decide. scan: fp32 only, the
// reference. Both return the same bits.
enum class CpuEngine : std::uint8_t { kInt8, kScan };

struct RegistryOptions {
  Preference preference = Preference::kAuto;
  unsigned threads = 0;  // 0: the cores this process may use (affinity and cgroup quota)
  CpuEngine cpu_engine = CpuEngine::kInt8;
  std::string isa;   // empty: the best this processor has; else a name of SupportedInt8Kernels()
  bool int4 = true;  // whether large collections also keep int4 codes
  cpu::Int8Tuning tuning;  // of the int8 engine; see cpu/calibration.h

  // Read unless preference is kCpu.
  GpuOptions gpu;
  WhenFull gpu_when_full = WhenFull::kCpu;
  std::vector<GpuFault> gpu_faults;     // of earlier processes; see WhyNotTried
  std::vector<GpuSearch> gpu_searches;  // tried in order; empty: DefaultGpuSearches()
  GpuObserver gpu_observer;
};

// The backend that answers, and why this one. The reason goes into the first lines of `serve` and
// onto every receipt.
struct Chosen {
  std::unique_ptr<Backend> backend;
  // "no NVIDIA driver on this machine (libcuda.so.1 not found)"; for a GPU, its description
  std::string reason;
  std::string gpu_bus_id;  // "0000:3b:00.0": of the GPU; empty for the CPU
  // The GPU was lost too often, so this process does not use it: see WhyNotTried.
  bool gpu_left_alone = false;
};

// Makes the options of the int8 engine: kernels, threads, tuning. Calibration measures with the
// same options.
// Errors: kInvalidArgument for an isa this processor lacks, naming those it has.
absl::StatusOr<cpu::Int8Options> MakeCpuOptions(const RegistryOptions& options);

// Chooses a backend. A GPU always comes with the CPU as its fallback: see failover_backend.h.
// Errors: kFailedPrecondition when preference is kGpu and the GPU cannot be used, with the reason;
//         kInvalidArgument for an isa this processor lacks, naming those it has.
absl::StatusOr<Chosen> ChooseBackend(const RegistryOptions& options);

}  // namespace simile::backend
