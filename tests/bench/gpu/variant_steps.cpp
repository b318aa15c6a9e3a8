#include <algorithm>
#include <exception>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/measuring_steps.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::KernelVariant;

// The figures of one variant at one batch size. Throws DeviceError.
nlohmann::json Measure(const StepBench& bench, backend::cuda::PassRunner& runner,
                       const std::vector<PlannedPass>& passes, unsigned batch) {
  const DeviceTime time =
      TimePasses(bench.card.device, runner, passes, bench.First(batch), bench.k);
  const auto checked = bench.truth->CheckProven(time.answers, 0, bench.k);
  nlohmann::json line{{"passes", time.passes},
                      {"unproven", time.unproven},
                      {"same_answers", checked.ok() && *checked > 0},
                      {"us", time.kernels.median_us},
                      {"min_us", time.kernels.min_us},
                      {"with_copies_us", time.with_copies.median_us}};
  if (!checked.ok()) line["difference"] = std::string(checked.status().message());
  return line;
}

}  // namespace

void MeasureVariants(const StepBench& bench) {
  backend::cuda::Device& device = bench.card.device;
  backend::cuda::ResidentRows& rows = bench.steps.rows();
  const backend::WorkspaceSize& workspace = bench.card.workspace.size();
  backend::cuda::PassRunner runner(device, bench.card.workspace, rows);
  std::exception_ptr failure;
  for (const unsigned batch :
       bench.Cases({1U, 8U, 16U, 32U, 48U, 64U, 65U, 80U, 100U, 128U, 192U, 256U, 1'000U})) {
    if (batch > bench.queries.row_count()) break;
    const auto served = PlanBatch(device.traits(), workspace, rows, batch, bench.k);
    for (const KernelVariant& variant : backend::cuda::KernelVariants()) {
      if (!bench.variants.empty() && std::ranges::count(bench.variants, variant.name) == 0)
        continue;
      const auto passes = PlanBatch(variant, device.traits(), workspace, rows, batch, bench.k);
      if (passes.empty()) continue;
      nlohmann::json line{{"batch", batch},
                          {"k", bench.k},
                          {"variant", variant.name},
                          {"planned", !served.empty() && served.front().plan.variant == &variant}};
      try {
        line.update(Measure(bench, runner, passes, batch));
      } catch (const std::exception& error) {
        line["error"] = error.what();
        if (!failure) failure = std::current_exception();
      }
      bench.log.Add("variants", bench.shape, std::move(line));
      if (device.lost()) std::rethrow_exception(failure);
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace simile::bench::gpu
