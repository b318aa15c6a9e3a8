#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bench/gpu/event_timer.h"
#include "bench/gpu/measuring_steps.h"
#include "kernels/finish.h"
#include "kernels/row_scan.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;
using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;
using kernels::RowScanShape;

// Raises gates above every score.
constexpr float kBeyondAllScores = 10;
constexpr ScanParts kReadingOnly{
    .finish = false, .gate_rise = kBeyondAllScores, .sample_groups = 1};

// The shapes of a strategy's plain scans on this card and on cards with less shared memory. Those
// of other forms belong to other kernels, whose plans are not the plain scan's.
std::vector<RowScanShape> ShapesOf(PassStrategy strategy, unsigned stride, unsigned batch,
                                   const backend::cuda::CardTraits& card) {
  constexpr std::size_t kStep = std::size_t{4} << 10;
  std::vector<RowScanShape> shapes;
  const auto add = [&](const RowScanShape& shape) {
    if (shape.queries < batch) return;
    const bool known = std::ranges::any_of(shapes, [&](const RowScanShape& other) {
      return other.stages == shape.stages && other.warps == shape.warps;
    });
    if (!known) shapes.push_back(shape);
  };
  for (const backend::cuda::KernelVariant& variant : backend::cuda::KernelVariants()) {
    if (variant.strategy != strategy || variant.form != kernels::ScanForm::kPlain ||
        variant.code_min > card.code_capability) {
      continue;
    }
    for (std::size_t bytes = card.shared_bytes_max; bytes > kStep; bytes -= kStep) {
      add(variant.ShapeFor(stride, batch, bytes));
    }
  }
  return shapes;
}

double RowBytes(PassStrategy strategy, const StepBench& bench) {
  const double row_bytes =
      strategy == PassStrategy::kInt8Scan
          ? static_cast<double>(backend::Int8Stride(bench.stride()) + backend::gpu_sizes::kInt8Row)
          : 2.0 * bench.stride();
  return row_bytes * bench.row_count();
}

// The hits of all queries in the last run.
std::uint64_t SumOfHits(const StepBench& bench, const PassPlan& plan) {
  backend::cuda::Device& device = bench.card.device;
  std::vector<unsigned> counts(plan.slots);
  device.Check(cudaMemcpyAsync(counts.data(), bench.steps.PassOf(plan).hit_counts,
                               counts.size() * sizeof(unsigned), cudaMemcpyDeviceToHost,
                               bench.steps.stream()),
               "cudaMemcpyAsync");
  device.AwaitOrLose(bench.steps.stream());
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

Spread TimeScan(const StepBench& bench, const PassPlan& plan, const ScanParts& parts) {
  return TimedWork(bench.card.device, bench.steps.stream(),
                   [&] { bench.steps.EnqueueScan(plan, parts); })
      .Time();
}

// The same after writing twice the L2's bytes, so that no row is left there.
Spread TimeColdScan(const StepBench& bench, const PassPlan& plan) {
  backend::cuda::Device& device = bench.card.device;
  const std::size_t bytes = 2 * device.traits().l2_bytes;
  const DeviceArray<std::byte> other(device, bytes, MemoryKind::kWorkspace);
  const auto sweep = [&] {
    device.Check(cudaMemsetAsync(other.get(), 0, bytes, bench.steps.stream()), "cudaMemsetAsync");
  };
  const TimedWork part(device, bench.steps.stream(), sweep);
  const TimedWork whole(device, bench.steps.stream(), [&] {
    sweep();
    bench.steps.EnqueueScan(plan);
  });
  return TimeBeyond(whole, part);
}

void MeasureShapes(PassStrategy strategy, unsigned batch, const StepBench& bench) {
  constexpr double kSlotKb = 4;  // of a stage
  const auto scan = bench.PlanBy(strategy, batch, bench.k);
  if (!scan) return;
  PassPlan plan = *scan;
  const RowScanShape planned = plan.shape;
  const auto& card = bench.card.device.traits();
  for (const RowScanShape& shape : ShapesOf(strategy, bench.stride(), batch, card)) {
    plan.shape = shape;
    bench.steps.Fill(plan, bench.First(batch), bench.k, 1);
    const Spread time = TimeScan(bench, plan, kReadingOnly);
    bench.log.Add("scan-shape", bench.shape,
                  {{"variant", plan.variant->name},
                   {"batch", batch},
                   {"warps", shape.warps},
                   {"stages", shape.stages},
                   {"in_flight_kb", shape.stages > 1 ? kSlotKb * shape.warps * (shape.stages - 1)
                                                     : kSlotKb * shape.warps},
                   {"planned", shape.stages == planned.stages && shape.warps == planned.warps},
                   {"us", time.median_us},
                   {"min_us", time.min_us},
                   {"gb_s", RowBytes(strategy, bench) / time.median_us / 1e3}});
  }
}

void MeasureParts(PassStrategy strategy, unsigned batch, const StepBench& bench) {
  const auto scan = bench.PlanBy(strategy, batch, bench.k);
  if (!scan) return;
  const PassPlan& plan = *scan;
  bench.steps.Fill(plan, bench.First(batch), bench.k, 1);
  const Spread reading = TimeScan(bench, plan, kReadingOnly);
  bench.steps.Fill(plan, bench.First(batch), bench.k);
  const Spread sampled = TimeScan(bench, plan, {.finish = false, .gate_rise = kBeyondAllScores});
  const Spread with_hits = TimeScan(bench, plan, {.finish = false});
  const std::uint64_t hits = SumOfHits(bench, plan);
  const Spread whole = TimeScan(bench, plan, {});
  const Spread cold = TimeColdScan(bench, plan);
  bench.log.Add("scan-parts", bench.shape,
                {{"variant", plan.variant->name},
                 {"batch", batch},
                 {"k", bench.k},
                 {"sample_groups", plan.sample_groups},
                 {"reading_us", reading.median_us},
                 {"sample_us", sampled.median_us - reading.median_us},
                 {"hits", hits},
                 {"hits_us", with_hits.median_us - sampled.median_us},
                 {"finish_us", whole.median_us - with_hits.median_us},
                 {"pass_us", whole.median_us},
                 {"cold_pass_us", cold.median_us}});
}

// The plan of one gate has the capacity for the hits of all.
void MeasureSecondGates(PassStrategy strategy, unsigned batch, const StepBench& bench) {
  const auto served = bench.PlanBy(strategy, batch, bench.k);
  const auto one_gate = bench.PlanBy(strategy, batch, bench.k, {.second_gate_share = 0});
  if (!served || !one_gate || one_gate->slots < batch) return;
  for (const unsigned share : bench.Cases({0U, 4U, 8U, 16U, 32U, 64U})) {
    const auto plan =
        share == 0 ? one_gate : backend::cuda::WithSecondGate(*one_gate, bench.row_count(), share);
    if (!plan) continue;
    bench.steps.Fill(*plan, bench.First(batch), bench.k);
    const Spread time = TimeScan(bench, *plan, {});
    bench.log.Add("second-gate", bench.shape,
                  {{"variant", plan->variant->name},
                   {"batch", batch},
                   {"k", bench.k},
                   {"one_row_in", share},
                   {"planned", plan->second_tiles == served->second_tiles},
                   {"hits", SumOfHits(bench, *plan)},
                   {"pass_us", time.median_us}});
  }
}

void MeasureFinishes(PassStrategy strategy, unsigned batch, unsigned k, const StepBench& bench) {
  backend::cuda::Device& device = bench.card.device;
  const cudaStream_t stream = bench.steps.stream();
  const auto scan = bench.PlanBy(strategy, batch, k);
  if (!scan) return;
  PassPlan plan = *scan;
  const bool in_scan_is_planned = plan.finishes_in_one_launch;
  plan.finishes_in_one_launch = true;
  bench.steps.Fill(plan, bench.First(batch), k);
  const TimedWork scan_alone(device, stream,
                             [&] { bench.steps.EnqueueScan(plan, {.finish = false}); });
  const TimedWork scan_and_finish(device, stream, [&] { bench.steps.EnqueueScan(plan); });
  const double in_scan_us = TimeBeyond(scan_and_finish, scan_alone).median_us;
  bench.steps.EnqueueScan(plan, {.finish = false});
  const kernels::Pass pass = bench.steps.PassOf(plan);
  const std::size_t hits = std::size_t{plan.slots} * plan.capacity;
  const DeviceArray<kernels::Hit> kept(device, hits, MemoryKind::kWorkspace);
  const auto copy = [&](void* to, const void* from) {
    device.Check(
        cudaMemcpyAsync(to, from, hits * sizeof(kernels::Hit), cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
  };
  copy(kept.get(), pass.hits);
  device.AwaitOrLose(stream);
  // Each finish overwrites the hits: they are restored before the next.
  const TimedWork restore(device, stream, [&] { copy(pass.hits, kept.get()); });
  std::array<double, 2> us{};
  for (const bool one_launch : {true, false}) {
    PassPlan tried = plan;
    tried.finishes_in_one_launch = one_launch;
    const TimedWork whole(device, stream, [&] {
      copy(pass.hits, kept.get());
      bench.steps.EnqueueFinish(tried);
    });
    us[one_launch ? 0 : 1] = TimeBeyond(whole, restore).median_us;
  }
  bench.log.Add("finish", bench.shape,
                {{"variant", plan.variant->name},
                 {"batch", batch},
                 {"k", k},
                 {"in_scan_us", in_scan_us},
                 {"one_block_us", us[0]},
                 {"three_launches_us", us[1]},
                 {"in_scan_is_planned", in_scan_is_planned},
                 {"one_block_is_planned", k <= kernels::kHitsOfOneBlock}});
}

}  // namespace

void MeasureScanShapes(const StepBench& bench) {
  for (const PassStrategy strategy : kScans) {
    for (const unsigned batch : bench.Cases({16U, 32U, 64U})) {
      MeasureShapes(strategy, batch, bench);
    }
  }
}

void MeasureScanParts(const StepBench& bench) {
  for (const PassStrategy strategy : kScans) {
    for (const unsigned batch : bench.Cases({1U, 32U, 64U})) {
      MeasureParts(strategy, batch, bench);
      MeasureSecondGates(strategy, batch, bench);
    }
  }
}

void MeasureFinish(const StepBench& bench) {
  for (const PassStrategy strategy : kScans) {
    for (const unsigned k : bench.Cases({10U, 16U, 32U, 100U, 128U, 1'000U})) {
      for (const unsigned batch : bench.Cases({1U, 32U, 64U})) {
        MeasureFinishes(strategy, batch, k, bench);
      }
    }
  }
}

}  // namespace simile::bench::gpu
