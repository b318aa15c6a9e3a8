#include <fmt/format.h>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/measuring_steps.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::KernelVariant;

// Whether all queries that both prove have the same rows and score bits.
bool SameAnswers(const DeviceTime& one, const DeviceTime& other) {
  for (std::size_t i = 0; i < one.answers.size(); ++i) {
    if (!one.answers[i].empty() && !other.answers[i].empty() &&
        one.answers[i] != other.answers[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

void MeasureVariants(const StepBench& bench) {
  backend::cuda::Device& device = bench.card.device;
  backend::cuda::ResidentRows& rows = bench.steps.rows();
  const backend::WorkspaceSize& workspace = bench.card.workspace.size();
  backend::cuda::PassRunner runner(device, bench.card.workspace, rows);
  for (const unsigned batch :
       {1U, 8U, 16U, 32U, 48U, 64U, 65U, 80U, 100U, 128U, 192U, 256U, 1'000U}) {
    const MatrixView queries = bench.First(batch);
    const auto served = PlanBatch(device.traits(), workspace, rows, batch, bench.k);
    std::vector<DeviceTime> times;
    for (const KernelVariant& variant : backend::cuda::KernelVariants()) {
      const auto passes = PlanBatch(variant, device.traits(), workspace, rows, batch, bench.k);
      if (passes.empty()) continue;
      times.push_back(TimePasses(device, runner, passes, queries, bench.k));
      const DeviceTime& time = times.back();
      bench.log.Add("variants", bench.shape,
                    {{"batch", batch},
                     {"k", bench.k},
                     {"variant", variant.name},
                     {"planned", !served.empty() && served.front().plan.variant == &variant},
                     {"passes", time.passes},
                     {"unproven", time.unproven},
                     {"same_answers", SameAnswers(times.front(), time)},
                     {"us", time.kernels.median_us},
                     {"min_us", time.kernels.min_us},
                     {"with_copies_us", time.with_copies.median_us}});
    }
  }
}

}  // namespace simile::bench::gpu
