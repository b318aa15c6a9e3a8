#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/planned_passes.h"

namespace simile::bench::gpu {

// The time of one batch on the device, in all its passes.
struct DeviceTime {
  std::string_view variant;  // of the first pass
  std::size_t passes = 0;
  std::size_t unproven = 0;  // answers that a rescan would have to give
  Spread kernels;            // from queries on the device to answers on the device
  Spread with_copies;        // from queries in pinned memory to answers in pinned memory
  std::vector<std::vector<Hit>> answers;  // by query; empty where it is not proven

  // Whether so few answers are unproven that rescans would not dominate the time of the batch.
  bool few_are_unproven() const { return unproven * kAnswersPerUnproven <= answers.size(); }
  // Estimated: a rescan takes as long as some passes.
  static constexpr std::size_t kAnswersPerUnproven = 64;
};

// Runs the engine's own passes once, then times them. Throws DeviceError.
//   queries  those of the passes, each wanting k hits
DeviceTime TimePasses(backend::cuda::Device& device, backend::cuda::PassRunner& runner,
                      const std::vector<PlannedPass>& passes, MatrixView queries, unsigned k);

}  // namespace simile::bench::gpu
