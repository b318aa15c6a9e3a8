#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "backend/gpu_search.h"
#include "cli/plan/capacity.h"
#include "simile/clock.h"

namespace simile::cli {

// The card that a server on this machine would use.
struct FoundCard {
  std::string name;    // "NVIDIA H200"
  std::string origin;  // "gpu.device 0"
  std::uint64_t memory_bytes = 0;
};

// Asks the plug-in, which numbers cards and counts their memory as a server does, without opening
// one. Without a plug-in the driver's management library answers, which numbers cards by their
// place on the bus and counts a little more memory; `origin` then says so.
//   number           gpu.device
//   nvml             the management library, by its name or path
// Errors: those of the driver, the plug-in or the management library, in words for an operator.
absl::StatusOr<FoundCard> FindCard(int number, const backend::GpuSearch& search,
                                   const std::string& nvml);

// Measures for about a second what bounds every search of the CPU engine on this machine: how fast
// all threads together read again and again what fits into which cache, or into none, and what more
// rows cost the engine in a large batch.
//   dim  of the vectors to multiply
// Errors: kResourceExhausted without 300 MiB of memory.
absl::StatusOr<SpeedLimits> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                             std::size_t dim, const Clock& clock);

}  // namespace simile::cli
