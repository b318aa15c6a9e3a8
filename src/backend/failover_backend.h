#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "simile/backend.h"

namespace simile::backend {

// What happens to a collection whose rows do not fit on the device.
enum class WhenFull : std::uint8_t { kCpu, kRefuse };

// A request that the GPU failed and the CPU handles.
struct GpuEvent {
  FallbackCause cause = FallbackCause::kCallFailed;
  std::optional<int> device_error;  // the vendor's code, if a device call reported one
  std::string reason;               // "cudaErrorIllegalAddress at cudaEventQuery: ..."
};
using GpuObserver = std::function<void(const GpuEvent& event)>;

// Uses the GPU, and the CPU for everything that the GPU cannot do: a batch for which memory is
// short, a call fails or time runs out; a collection that does not fit; and everything after the
// device is lost. Every answer of the CPU says that the CPU answered and why; its bits are the
// same. An index on the CPU is built when it is first needed, so never while the GPU works; Plan
// counts its bytes, so that it will fit.
//   observer  called from the thread that searched or loaded, after the failure; called once for a
//             lost device. May be empty
std::unique_ptr<Backend> MakeFailoverBackend(std::unique_ptr<Backend> gpu,
                                             std::unique_ptr<Backend> cpu, WhenFull when_full,
                                             GpuObserver observer);

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

// Returns why a start at this time does not use the GPU, as text for a receipt; empty if it may use
// the GPU. Faults with a later time, after a clock was set back, do not count. Pure.
std::string WhyNotTried(std::span<const GpuFault> faults,
                        std::chrono::system_clock::time_point now);

}  // namespace simile::backend
