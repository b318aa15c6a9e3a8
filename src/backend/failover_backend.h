#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simile/backend.h"

namespace simile::backend {

// What becomes of a collection whose rows do not fit on the device.
enum class WhenFull : std::uint8_t { kCpu, kRefuse };

// Something that the GPU was asked for and did not do, so that the CPU does it.
struct GpuEvent {
  enum class Kind : std::uint8_t {
    kOutOfMemory,  // no room for a batch
    kCallFailed,   // a call failed and the device lives on
    kDeviceLost,   // for good: it is not touched again in this process
    kDoesNotFit,   // no room for a collection
  };
  Kind kind = Kind::kCallFailed;
  std::optional<int> cuda_error;  // cudaError_t, where CUDA was asked
  std::string reason;             // "cudaErrorIllegalAddress at cudaEventQuery: ..."
};
using GpuObserver = std::function<void(const GpuEvent& event)>;

// The GPU as long as it does what it is asked, and the CPU for what it does not: a batch for which
// it has no room or at which it fails, a collection that does not fit, and everything once the
// device is lost. Every answer of the CPU says that it is one, and why; its bits are the same. An
// index on the CPU is made when it is first needed, and never for a GPU that never fails; Plan
// counts it, so that there is room for it when it is.
//   observer  called from whichever thread asked, after the fact; a lost device is told once. May
//             be empty
std::unique_ptr<Backend> MakeFailoverBackend(std::unique_ptr<Backend> gpu,
                                             std::unique_ptr<Backend> cpu, WhenFull when_full,
                                             GpuObserver observer);

}  // namespace simile::backend
