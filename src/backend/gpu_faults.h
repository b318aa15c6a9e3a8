#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace simile::backend {

// A GPU that was lost while it served, as the fault journal remembers it.
struct GpuFault {
  std::chrono::system_clock::time_point at;
  std::string reason;  // "cudaErrorIllegalAddress at cudaEventQuery: ..."

  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

// So many faults in so short a time, and the next start does not touch the GPU: whatever loses it
// again and again would lose it again.
inline constexpr std::size_t kGpuFaultsMax = 3;
inline constexpr std::chrono::minutes kGpuFaultsWindow{10};

// Why a start at this moment leaves the GPU alone, in words for a receipt; empty when it does not.
// Faults of the future are those of a clock that was set back and do not count. Pure.
std::string WhyNotTried(std::span<const GpuFault> faults,
                        std::chrono::system_clock::time_point now);

}  // namespace simile::backend
