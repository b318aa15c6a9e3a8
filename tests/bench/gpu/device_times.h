#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "bench/gpu/event_timer.h"
#include "bench/gpu/pass_steps.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// The time of a batch on the device, from CUDA events.
struct DeviceTime {
  std::string strategy;      // "row_scan", "gemm"
  std::size_t passes = 0;    // of the batch; times are their sum
  std::size_t unproven = 0;  // queries that the engine would answer again from canonical scores
  Spread kernels;            // query vectors on the device to answers on the device
  Spread with_copies;        // query vectors on the host (pinned) to answers on the host (pinned)
};

// Times the passes of a batch of queries that all want k rows, after comparing their answers with
// those of the engine's own pass. Throws DeviceError.
// Errors: kInternal where they differ; kFailedPrecondition where the engine would use no pass.
absl::StatusOr<DeviceTime> TimeOnDevice(PassSteps& steps, MatrixView queries, unsigned k);

}  // namespace simile::bench::gpu
