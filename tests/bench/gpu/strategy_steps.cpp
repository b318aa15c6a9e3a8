#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/measuring_steps.h"
#include "bench/gpu/query_specs.h"
#include "certificate/seeded_random.h"
#include "kernels/canonical_scan.h"
#include "simile/row_mask.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::DeviceQuery;
using backend::cuda::Filter;
using backend::cuda::PassPlan;
using backend::cuda::PassRunner;
using backend::cuda::PlanPass;

double TimePass(const StepBench& bench, const PassPlan& plan, std::size_t first,
                std::size_t count) {
  bench.steps.Fill(plan, bench.queries.Slice(first, count), bench.k);
  return TimedWork(bench.card.device, bench.steps.stream(), [&] { bench.steps.EnqueuePass(plan); })
      .Time()
      .median_us;
}

// In the fewest passes, of equal size.
double TimeScanPasses(const StepBench& bench, unsigned batch) {
  const unsigned passes = (batch + kernels::kScanQueriesMax - 1) / kernels::kScanQueriesMax;
  double us = 0;
  for (unsigned pass = 0, first = 0; pass < passes; ++pass) {
    const unsigned count = (batch - first + passes - pass - 1) / (passes - pass);
    us += TimePass(bench, bench.ScanPlan(count, bench.k), first, count);
    first += count;
  }
  return us;
}

template <class Work>
double TimeOnHost(Work work) {
  constexpr int kRounds = 9;
  std::vector<double> samples;
  work();
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    work();
    samples.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
            .count());
  }
  return SpreadOf(samples).median_us;
}

RowMask EveryRow(unsigned row_count, unsigned step, unsigned first) {
  RowMask mask(row_count);
  for (unsigned row = first; row < row_count; row += step) mask.Allow(row);
  return mask;
}

std::vector<DeviceQuery> DeviceQueriesFor(const Filter* filter, unsigned batch, unsigned k) {
  std::vector<DeviceQuery> queries(batch);
  for (unsigned index = 0; index < batch; ++index) {
    queries[index].index = index;
    queries[index].filter = filter;
    queries[index].wanted = std::min(k, filter->passing);
  }
  return queries;
}

}  // namespace

PassPlan StepBench::ScanPlan(unsigned batch, unsigned k_wanted) const {
  backend::GpuTuning tuning;
  tuning.scan_queries_max = kernels::kScanQueriesMax;
  return PlanBatch(card.device.traits(), tuning, card.workspace.size(), steps.rows().size(), batch,
                   k_wanted)
      .at(0)
      .plan;
}

PassPlan StepBench::GemmPlan(unsigned batch, unsigned k_wanted) const {
  backend::GpuTuning tuning;
  tuning.scan_queries_max = 0;
  return PlanBatch(card.device.traits(), tuning, card.workspace.size(), steps.rows().size(), batch,
                   k_wanted)
      .at(0)
      .plan;
}

void MeasureStrategies(const StepBench& bench) {
  for (const unsigned batch : {8U, 16U, 32U, 48U, 64U, 65U, 80U, 96U, 100U, 112U, 128U}) {
    const double scan_us = TimeScanPasses(bench, batch);
    const double gemm_us = TimePass(bench, bench.GemmPlan(batch, bench.k), 0, batch);
    bench.log.Add("strategies", bench.shape,
                  {{"batch", batch}, {"k", bench.k}, {"scan_us", scan_us}, {"gemm_us", gemm_us}});
  }
}

// Host to host, because the engine minimises the time a caller waits.
void MeasureGather(const StepBench& bench) {
  PassRunner runner(bench.card.device, bench.card.workspace, bench.steps.rows());
  const backend::GpuTuning tuning;
  for (const unsigned batch : {1U, 32U, 100U}) {
    const std::vector<QuerySpec> specs = AllWanting(batch, bench.k);
    const SearchBatch search{bench.First(batch), specs};
    for (const unsigned share : {8U, 16U, 32U, 64U, 128U, 256U}) {
      // Two masks, because the cache recognises a mask by its content.
      const RowMask for_list = EveryRow(bench.row_count(), share, 0);
      const RowMask for_pass = EveryRow(bench.row_count(), share, 1);
      auto listed = DeviceQueriesFor(
          runner.rows().filters().Use(for_list, bench.row_count(), runner.workspace().stream(0)),
          batch, bench.k);
      const double gather_us = TimeOnHost([&] {
        for (std::span<const DeviceQuery> left(listed); !left.empty();) {
          const auto taken = left.first(std::min(left.size(), runner.CanonicalSlots(left)));
          runner.RunCanonical(search, taken);
          left = left.subspan(taken.size());
        }
      });
      const auto masked = DeviceQueriesFor(
          runner.rows().filters().Use(for_pass, 0, runner.workspace().stream(0)), batch, bench.k);
      const auto plan =
          PlanPass(bench.card.device.traits(), tuning, bench.card.workspace.size(),
                   bench.steps.rows().size(),
                   {.queries = batch, .hits_max = bench.k, .reach_max = bench.k, .growth = 0});
      const double pass_us =
          plan && plan->slots >= batch ? TimeOnHost([&] { runner.Run(*plan, search, masked); }) : 0;
      bench.steps.rows().filters().Release();
      bench.log.Add("gather", bench.shape,
                    {{"batch", batch},
                     {"k", bench.k},
                     {"one_row_in", share},
                     {"gather_us", gather_us},
                     {"pass_us", pass_us}});
    }
  }
}

void MeasureRescore(const StepBench& bench) {
  constexpr unsigned kRows = 200'000;
  const unsigned count = std::min(kRows, bench.row_count());
  tests::SeededRandom random(11);
  std::vector<unsigned> list(count);
  for (unsigned& row : list) row = static_cast<unsigned>(random.Below(bench.row_count()));
  backend::cuda::Device& device = bench.card.device;
  const cudaStream_t stream = bench.steps.stream();
  const PassPlan plan = bench.ScanPlan(1, bench.k);
  bench.steps.Fill(plan, bench.First(1), bench.k);
  device.Check(cudaMemcpyAsync(bench.card.workspace.kept_rows(), list.data(),
                               list.size() * sizeof(unsigned), cudaMemcpyHostToDevice, stream),
               "cudaMemcpyAsync");
  device.Await(stream);
  const kernels::Pass pass = bench.steps.PassOf(plan);
  const Spread time =
      TimedWork(device, stream, [&] {
        device.Check(kernels::LaunchRowScores(
                         pass, bench.card.workspace.kept_rows(), count,
                         reinterpret_cast<float*>(bench.card.workspace.answers()), stream),
                     "row_scores");
      }).Time();
  bench.log.Add("rescore", bench.shape,
                {{"rows", count},
                 {"row_bytes", bench.stride() * 4},
                 {"us", time.median_us},
                 {"gb_s", 4.0 * count * bench.stride() / time.median_us / 1e3}});
}

}  // namespace simile::bench::gpu
