#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace simile::backend {

// The loss of a GPU, as the fault journal records it.
struct GpuFault {
  std::chrono::system_clock::time_point at;
  std::string reason;  // "cudaErrorIllegalAddress at cudaEventQuery: ..."

  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

// After this many faults within this window the next start does not use the GPU, because it would
// probably be lost again.
inline constexpr std::size_t kGpuFaultsMax = 3;
inline constexpr std::chrono::minutes kGpuFaultsWindow{10};

// Returns why a start at this moment does not use the GPU, as text for a receipt; empty if it may.
// Faults with a later time, after a clock was set back, do not count. Pure.
std::string WhyNotTried(std::span<const GpuFault> faults,
                        std::chrono::system_clock::time_point now);

}  // namespace simile::backend
