#include "bench/gpu/device_times.h"

#include <vector>

#include <fmt/format.h>

#include "backend/gpu_options.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;

void Add(const Spread& part, Spread& sum) {
  sum.median_us += part.median_us;
  sum.min_us += part.min_us;
  sum.max_us += part.max_us;
  sum.samples = part.samples;
}

void EnqueueWithCopies(const PassSteps& steps, const PassPlan& plan) {
  backend::cuda::Workspace& workspace = steps.workspace();
  const std::size_t in = backend::LayQueries(plan.slots, steps.rows().size().stride).bytes;
  const std::size_t out = backend::LayAnswers(plan.slots, plan.best_stride).bytes;
  steps.device().Check(cudaMemcpyAsync(workspace.queries(), workspace.host_queries(), in,
                                       cudaMemcpyHostToDevice, steps.stream()),
                       "cudaMemcpyAsync");
  steps.EnqueuePass(plan);
  steps.device().Check(cudaMemcpyAsync(workspace.host_answers(), workspace.answers(), out,
                                       cudaMemcpyDeviceToHost, steps.stream()),
                       "cudaMemcpyAsync");
}

}  // namespace

absl::StatusOr<DeviceTime> TimeOnDevice(PassSteps& steps, MatrixView queries, unsigned k) {
  const std::vector<PlannedPass> passes =
      PlanBatch(steps.device().traits(), backend::GpuTuning{}, steps.workspace().size(),
                steps.rows().size(), queries.row_count(), k);
  if (passes.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("k {} of {} rows: the engine answers it from canonical scores at once", k,
                    steps.rows().size().row_count));
  }
  DeviceTime time;
  time.passes = passes.size();
  for (const PlannedPass& pass : passes) {
    const MatrixView taken = queries.Slice(pass.first, pass.count);
    const auto unproven = steps.CheckAgainst(pass.plan, taken, k);
    if (!unproven.ok()) return unproven.status();
    time.unproven += *unproven;
    time.strategy = pass.plan.strategy() == PassStrategy::kRowScan ? "row_scan" : "gemm";
    steps.Fill(pass.plan, taken, k);
    Add(TimedWork(steps.device(), steps.stream(), [&] { steps.EnqueuePass(pass.plan); }).Time(),
        time.kernels);
    Add(TimedWork(steps.device(), steps.stream(), [&] { EnqueueWithCopies(steps, pass.plan); })
            .Time(),
        time.with_copies);
  }
  return time;
}

}  // namespace simile::bench::gpu
