#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/measuring_steps.h"
#include "bench/gpu/query_specs.h"
#include "simile/row_mask.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::DeviceQuery;
using backend::cuda::Filter;
using backend::cuda::PassPlan;
using backend::cuda::PassRunner;
using backend::cuda::PassStrategy;

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

// Canonical scores of all rows that may be in the answers, as the engine computes them.
double TimeCanonical(PassRunner& runner, const SearchBatch& search,
                     std::span<const DeviceQuery> queries) {
  return TimeOnHost([&] {
    for (std::span<const DeviceQuery> left = queries; !left.empty();) {
      const auto taken = left.first(runner.CanonicalSlots(left));
      runner.RunCanonical(search, taken);
      left = left.subspan(taken.size());
    }
  });
}

// Of a batch that one pass answers; 0 where none does.
double TimePass(const StepBench& bench, PassRunner& runner, const SearchBatch& search,
                std::span<const DeviceQuery> queries) {
  const auto passes = PlanBatch(bench.card.device.traits(), bench.card.workspace.size(),
                                runner.rows(), queries.size(), bench.k);
  if (passes.size() != 1) return 0;
  return TimeOnHost([&] { runner.Run(passes.front().plan, search, queries); });
}

std::vector<DeviceQuery> FilteredQueries(const Filter& filter, unsigned batch, unsigned k) {
  auto queries = UnfilteredQueries(batch, std::min(k, filter.passing));
  for (DeviceQuery& query : queries) query.filter = &filter;
  return queries;
}

void MeasureSmallSegments(const StepBench& bench) {
  const MatrixView all = bench.rows.host().rows;
  for (const unsigned row_count : bench.Cases({1'024U, 2'048U, 4'096U, 8'192U, 16'384U, 32'768U})) {
    if (row_count > bench.row_count()) break;
    const MatrixView rows = all.Slice(0, row_count);
    backend::cuda::ResidentRows resident(bench.card.device, {rows, nullptr, Metric::kCosine, 0},
                                         ResidentSizeOf(bench.card.device, rows));
    PassRunner runner(bench.card.device, bench.card.workspace, resident);
    for (const unsigned batch : bench.Cases({1U, 32U, 100U})) {
      const std::vector<QuerySpec> specs = AllWanting(batch, bench.k);
      const SearchBatch search{bench.First(batch), specs};
      const auto queries = UnfilteredQueries(batch, bench.k);
      const double canonical_us = TimeCanonical(runner, search, queries);
      bench.log.Add("small-segments", bench.shape,
                    {{"batch", batch},
                     {"k", bench.k},
                     {"rows", row_count},
                     {"canonical_us", canonical_us},
                     {"pass_us", TimePass(bench, runner, search, queries)}});
    }
  }
}

}  // namespace

// Host to host, because the engine minimises the time a caller waits.
void MeasureGather(const StepBench& bench) {
  PassRunner runner(bench.card.device, bench.card.workspace, bench.rows);
  for (const unsigned batch : bench.Cases({1U, 32U, 100U})) {
    const std::vector<QuerySpec> specs = AllWanting(batch, bench.k);
    const SearchBatch search{bench.First(batch), specs};
    for (const unsigned share : bench.Cases({8U, 16U, 32U, 64U, 128U, 256U})) {
      // Two masks, because the cache recognises a mask by its content.
      const RowMask for_list = EveryRow(bench.row_count(), share, 0);
      const RowMask for_pass = EveryRow(bench.row_count(), share, 1);
      const cudaStream_t stream = runner.workspace().stream(0);
      auto& filters = runner.rows().filters();
      const auto listed =
          FilteredQueries(*filters.Use(for_list, bench.row_count(), stream), batch, bench.k);
      const double gather_us = TimeCanonical(runner, search, listed);
      const auto masked = FilteredQueries(*filters.Use(for_pass, 0, stream), batch, bench.k);
      const double pass_us = TimePass(bench, runner, search, masked);
      filters.Release();
      bench.log.Add("gather", bench.shape,
                    {{"batch", batch},
                     {"k", bench.k},
                     {"one_row_in", share},
                     {"gather_us", gather_us},
                     {"pass_us", pass_us}});
    }
  }
  MeasureSmallSegments(bench);
}

void MeasureExchange(const StepBench& bench) {
  PassRunner runner(bench.card.device, bench.card.workspace, bench.rows);
  for (const PassStrategy strategy : kScans) {
    for (const unsigned batch : bench.Cases({1U, 8U, 32U, 64U})) {
      const auto scan = bench.PlanBy(strategy, batch, bench.k);
      if (!scan || scan->slots < batch) continue;
      PassPlan plan = *scan;
      const std::vector<QuerySpec> specs = AllWanting(batch, bench.k);
      const auto queries = UnfilteredQueries(batch, std::min(bench.k, bench.row_count()));
      const auto time = [&](bool is_mapped) {
        plan.is_mapped = is_mapped;
        return TimeOnHost([&] { runner.Run(plan, {bench.First(batch), specs}, queries); });
      };
      const double copies_us = time(false);
      bench.log.Add("exchange", bench.shape,
                    {{"variant", plan.variant->name},
                     {"batch", batch},
                     {"k", bench.k},
                     {"copies_us", copies_us},
                     {"mapped_us", time(true)}});
    }
  }
}

}  // namespace simile::bench::gpu
