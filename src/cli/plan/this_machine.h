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

// Asks the plug-in, which numbers cards and counts memory as a server does, without opening a card.
// Without a plug-in asks the driver's management library. The library numbers cards by their place
// on the bus and counts a little more memory; `origin` then says so.
//   number           gpu.device
//   nvml             the management library, by its name or path
// Errors: the driver's, the plug-in's or the management library's, in words for an operator.
absl::StatusOr<FoundCard> FindCard(int number, const backend::GpuSearch& search,
                                   const std::string& nvml);

// Measures, in about a second, the rates that bound every search of the CPU engine on this machine.
// First the rate at which all threads together read blocks of different sizes, from caches to
// memory. Then the engine's multiply-adds per second in a large batch.
//   dim  dimension of the vectors to multiply
// Errors: kResourceExhausted if less than 300 MiB of memory is free.
absl::StatusOr<SpeedLimits> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                             std::size_t dim, const Clock& clock);

}  // namespace simile::cli
