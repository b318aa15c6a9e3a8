#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/measuring_steps.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::KernelVariant;
using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;

// Times whole passes of the engine and logs them. A case that fails is logged as such and ends no
// other, unless the device is lost.
class PassTimes {
 public:
  explicit PassTimes(const StepBench& bench)
      : bench_(bench), runner_(bench.card.device, bench.card.workspace, bench.rows) {}

  //   line    what the passes are: batch, k and the choice
  //   passes  of a batch whose queries want k hits each
  // Throws the first error when the device is lost.
  void Add(const char* step, nlohmann::json line, const std::vector<PlannedPass>& passes) {
    try {
      line.update(Measure(passes, line["batch"], line["k"]));
    } catch (const std::exception& error) {
      line["error"] = error.what();
      if (!failure_) failure_ = std::current_exception();
    }
    bench_.log.Add(step, bench_.shape, std::move(line));
    if (bench_.card.device.lost()) std::rethrow_exception(failure_);
  }

  // Throws the first error.
  void End() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  nlohmann::json Measure(const std::vector<PlannedPass>& passes, unsigned batch, unsigned k) {
    const DeviceTime time = TimePasses(bench_.card.device, runner_, passes, bench_.First(batch), k);
    const auto checked = bench_.truth.CheckProven(time.answers, 0, k);
    nlohmann::json figures{{"passes", time.passes},
                           {"unproven", time.unproven},
                           {"same_answers", checked.ok() && *checked > 0},
                           {"us", time.kernels.median_us},
                           {"min_us", time.kernels.min_us},
                           {"with_copies_us", time.with_copies.median_us}};
    if (!checked.ok()) figures["difference"] = std::string(checked.status().message());
    return figures;
  }

  const StepBench& bench_;
  backend::cuda::PassRunner runner_;
  std::exception_ptr failure_;
};

}  // namespace

std::optional<PassPlan> StepBench::PlanBy(PassStrategy strategy, unsigned batch, unsigned k_wanted,
                                          const backend::GpuTuning& tuning) const {
  const auto passes = PlanBatch(strategy, card.device.traits(), card.workspace.size(), rows, batch,
                                k_wanted, tuning);
  if (passes.empty()) return std::nullopt;
  return passes.front().plan;
}

void MeasureVariants(const StepBench& bench) {
  const backend::cuda::CardTraits& card = bench.card.device.traits();
  const backend::WorkspaceSize& workspace = bench.card.workspace.size();
  PassTimes times(bench);
  for (const unsigned batch :
       bench.Cases({1U, 8U, 16U, 32U, 48U, 64U, 65U, 80U, 100U, 128U, 192U, 256U, 1'000U})) {
    if (batch > bench.queries.row_count()) break;
    const auto served = PlanBatch(card, workspace, bench.rows, batch, bench.k);
    for (const KernelVariant& variant : backend::cuda::KernelVariants()) {
      if (!bench.variants.empty() && std::ranges::count(bench.variants, variant.name) == 0)
        continue;
      const auto passes = PlanBatch(variant, card, workspace, bench.rows, batch, bench.k);
      if (passes.empty()) continue;
      times.Add("variants",
                {{"batch", batch},
                 {"k", bench.k},
                 {"variant", variant.name},
                 {"planned", !served.empty() && served.front().plan.variant == &variant}},
                passes);
    }
  }
  times.End();
}

// The plan of one gate has the capacity for the hits of all.
void MeasureSecondGates(const StepBench& bench) {
  PassTimes times(bench);
  for (const PassStrategy strategy : kScans) {
    for (const unsigned batch : bench.Cases({1U, 32U, 64U})) {
      const auto served = bench.PlanBy(strategy, batch, bench.k);
      const auto one_gate = bench.PlanBy(strategy, batch, bench.k, {.second_gate_share = 0});
      if (!served || !one_gate || one_gate->slots < batch) continue;
      for (const unsigned share : bench.Cases({0U, 4U, 8U, 16U, 32U, 64U})) {
        const auto plan =
            share == 0 ? one_gate : WithSecondGate(*one_gate, bench.row_count(), share);
        if (!plan) continue;
        times.Add("second-gate",
                  {{"variant", plan->variant->name},
                   {"batch", batch},
                   {"k", bench.k},
                   {"one_row_in", share},
                   {"planned", plan->second_tiles == served->second_tiles}},
                  {{*plan, 0, batch}});
      }
    }
  }
  times.End();
}

void MeasureFinish(const StepBench& bench) {
  PassTimes times(bench);
  for (const PassStrategy strategy : kScans) {
    for (const unsigned k : bench.Cases({10U, 16U, 32U, 100U, 128U, 1'000U})) {
      for (const unsigned batch : bench.Cases({1U, 32U, 64U})) {
        const auto scan = bench.PlanBy(strategy, batch, k);
        if (!scan || scan->slots < batch) continue;
        for (const bool one_block : {true, false}) {
          PassPlan plan = *scan;
          plan.finishes_in_one_launch = one_block;
          plan.is_mapped = false;
          times.Add("finish",
                    {{"variant", plan.variant->name},
                     {"batch", batch},
                     {"k", k},
                     {"one_block", one_block},
                     {"planned", one_block == scan->finishes_in_one_launch}},
                    {{plan, 0, batch}});
        }
      }
    }
  }
  times.End();
}

void MeasureTiles(const StepBench& bench) {
  PassTimes times(bench);
  for (const unsigned batch : bench.Cases({100U, 1'000U})) {
    const auto served = bench.PlanBy(PassStrategy::kGemm, batch, bench.k);
    if (!served) continue;
    const PassPlan& planned = *served;
    const std::vector<unsigned> cases =
        bench.Cases({4'096U, 8'448U, 16'896U, 33'792U, 67'584U, 84'480U});
    std::vector<PassPlan> plans{planned};
    for (const unsigned rows : cases) {
      const auto plan = bench.PlanBy(PassStrategy::kGemm, batch, bench.k, {.tile_rows = rows});
      if (!plan || plan->slots != planned.slots) continue;
      const bool known = std::ranges::any_of(
          plans, [&](const PassPlan& other) { return other.tile_rows == plan->tile_rows; });
      if (!known) plans.push_back(*plan);
    }
    for (const PassPlan& plan : plans) {
      const std::size_t bytes = std::size_t{plan.tile_rows} * plan.slots * sizeof(__half);
      const unsigned count = std::min(batch, plan.slots);
      times.Add("tile",
                {{"batch", count},
                 {"k", bench.k},
                 {"tile_rows", plan.tile_rows},
                 {"tile_mib", static_cast<double>(bytes) / (1U << 20)},
                 {"planned", plan.tile_rows == planned.tile_rows}},
                {{plan, 0, count}});
    }
  }
  times.End();
}

}  // namespace simile::bench::gpu
