#include <algorithm>
#include <optional>
#include <vector>

#include "bench/gpu/device_memory_kernels.h"
#include "bench/gpu/event_timer.h"
#include "bench/gpu/measuring_steps.h"
#include "kernels/topk_fp16.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;
using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;
using kernels::kTileGranule;

constexpr unsigned kBatches[] = {100, 1'000};

double Flops(const StepBench& bench, unsigned slots) {
  return 2.0 * bench.row_count() * bench.stride() * slots;
}

// Sets a part of the L2 aside for the memory, or ends that (0 bytes); applies to the next capture.
void KeepInL2(const StepBench& bench, void* memory, std::size_t bytes) {
  Device& device = bench.card.device;
  device.Check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes), "cudaDeviceSetLimit");
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.base_ptr = memory;
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp =
      bytes != 0 ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
  value.accessPolicyWindow.missProp =
      bytes != 0 ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
  device.Check(
      cudaStreamSetAttribute(bench.steps.stream(), cudaStreamAttributeAccessPolicyWindow, &value),
      "cudaStreamSetAttribute");
}

// All rows times all queries, tile by tile into the same buffer.
void EnqueueProducts(const StepBench& bench, const PassPlan& plan, cudaDataType out, void* scores) {
  const float one = 1, zero = 0;
  const auto stride = static_cast<int>(bench.stride());
  for (unsigned first = 0; first < bench.row_count(); first += plan.tile_rows) {
    const unsigned columns = std::min(plan.tile_rows, bench.row_count() - first);
    bench.card.device.Check(
        bench.card.device.blas().gemm(
            bench.card.workspace.blas(0), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(columns),
            static_cast<int>(plan.slots), stride, &one,
            bench.steps.rows().fp16_rows() + std::size_t{first} * bench.stride(), CUDA_R_16F,
            stride, bench.card.workspace.fp16_queries(), CUDA_R_16F, stride, &zero, scores, out,
            static_cast<int>(plan.tile_rows), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }
}

// The products alone, and the whole pass: products that stream more rows than the L2 holds are
// fast, but then the select reads its scores from memory.
//   tile  null: fp32 scores, which only the products take
void MeasureTile(const StepBench& bench, const PassPlan& plan, unsigned batch, bool planned,
                 __half* tile, bool keep_in_l2) {
  Device& device = bench.card.device;
  const bool floats = tile == nullptr;
  const std::size_t bytes = std::size_t{plan.tile_rows} * plan.slots * (floats ? 4 : 2);
  const DeviceArray<std::byte> own(device, floats ? bytes : 0, MemoryKind::kWorkspace);
  void* const scores = floats ? static_cast<void*>(own.get()) : tile;
  if (keep_in_l2) KeepInL2(bench, scores, bytes);
  const Spread products = TimedWork(device, bench.steps.stream(), [&] {
                            EnqueueProducts(bench, plan, floats ? CUDA_R_32F : CUDA_R_16F, scores);
                          }).Time();
  nlohmann::json line{{"batch", batch},
                      {"slots", plan.slots},
                      {"tile_rows", plan.tile_rows},
                      {"tile_mib", static_cast<double>(bytes) / (1U << 20)},
                      {"scores", floats ? "fp32" : "fp16"},
                      {"kept_in_l2", keep_in_l2},
                      {"planned", planned},
                      {"us", products.median_us},
                      {"tflops", Flops(bench, plan.slots) / products.median_us / 1e6}};
  if (!floats) {
    line["pass_us"] =
        TimedWork(device, bench.steps.stream(),
                  [&] { bench.steps.EnqueueGemm(plan, {.two_streams = !keep_in_l2}); })
            .Time()
            .median_us;
  }
  if (keep_in_l2) KeepInL2(bench, nullptr, 0);
  bench.log.Add("tile", bench.shape, line);
}

// The plan with a tile of about so many rows, whatever the L2 holds; nullopt where there is none.
std::optional<PassPlan> PlanOfTile(const StepBench& bench, unsigned batch, unsigned slots,
                                   unsigned tile_rows) {
  backend::cuda::CardTraits card = bench.card.device.traits();
  card.l2_bytes = std::size_t{1} << 40;
  backend::WorkspaceSize size = bench.card.workspace.size();
  size.tile_bytes = std::min(size.tile_bytes, std::size_t{tile_rows} * slots * sizeof(__half));
  const auto passes =
      PlanBatch(PassStrategy::kGemm, card, size, bench.steps.rows(), batch, bench.k);
  if (passes.empty()) return std::nullopt;
  return passes.front().plan;
}

}  // namespace

void MeasureTiles(const StepBench& bench) {
  __half* const tile = bench.card.workspace.tile(0);
  for (const unsigned batch : bench.Cases(kBatches)) {
    const PassPlan planned = bench.GemmPlan(batch, bench.k);
    std::vector<unsigned> done{planned.tile_rows};
    bench.steps.Fill(planned, bench.First(std::min(batch, planned.slots)), bench.k);
    MeasureTile(bench, planned, batch, true, tile, false);
    for (const unsigned rows : bench.Cases({4'096U, 8'448U, 16'896U, 33'792U, 67'584U})) {
      const auto plan = PlanOfTile(bench, batch, planned.slots, rows);
      if (!plan || plan->slots != planned.slots) continue;
      if (std::ranges::count(done, plan->tile_rows) != 0) continue;
      done.push_back(plan->tile_rows);
      bench.steps.Fill(*plan, bench.First(std::min(batch, plan->slots)), bench.k);
      MeasureTile(bench, *plan, batch, false, tile, false);
    }
    bench.steps.Fill(planned, bench.First(std::min(batch, planned.slots)), bench.k);
    MeasureTile(bench, planned, batch, false, nullptr, false);
    const std::size_t bytes = std::size_t{planned.tile_rows} * planned.slots * sizeof(__half);
    const bool can_keep = bench.card.device.traits().capability >= 80 &&
                          bytes <= bench.card.device.traits().l2_bytes / 2;
    if (can_keep) MeasureTile(bench, planned, batch, false, tile, true);
  }
}

void MeasureSelect(const StepBench& bench) {
  Device& device = bench.card.device;
  const cudaStream_t stream = bench.steps.stream();
  const unsigned batch = bench.Cases(kBatches).back();
  const PassPlan plan = bench.GemmPlan(batch, bench.k);
  bench.steps.Fill(plan, bench.First(std::min(batch, plan.slots)), bench.k);
  kernels::Pass pass = bench.steps.PassOf(plan);
  pass.capacity = static_cast<unsigned>(bench.card.workspace.size().hits_max / plan.slots);
  const kernels::ScoreTile tile = bench.steps.TileAt(plan, 0, 0);
  const std::size_t scores = std::size_t{tile.pitch} * plan.slots;
  device.Check(LaunchRandomFp16(bench.card.workspace.tile(0), scores, 7, stream), "random_fp16");
  const auto clear = [&] {
    device.Check(cudaMemsetAsync(pass.hit_counts, 0, plan.slots * sizeof(unsigned), stream),
                 "cudaMemsetAsync");
  };
  const TimedWork clearing(device, stream, clear);
  for (const double hits_a_chunk : {0.0, 0.5, 5.0, 25.0}) {
    constexpr double kChunk = 1'024;
    // Scores are uniform in [-1/2, 1/2), on the fp16 grid: steps of 2^-12 near 1/2.
    const auto gate = static_cast<float>(hits_a_chunk == 0 ? 1.0 : 0.5 - hits_a_chunk / kChunk);
    const std::vector<float> gates(plan.slots, gate);
    device.Check(cudaMemcpyAsync(pass.gates, gates.data(), gates.size() * sizeof(float),
                                 cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
    device.AwaitOrLose(stream);
    const TimedWork whole(device, stream, [&] {
      clear();
      device.Check(kernels::LaunchTopkFp16(pass, tile, stream), "topk_fp16");
    });
    const Spread time = TimeBeyond(whole, clearing);
    bench.log.Add("select", bench.shape,
                  {{"batch", batch},
                   {"tile_rows", plan.tile_rows},
                   {"hits_a_chunk", hits_a_chunk},
                   {"us", time.median_us},
                   {"tb_s", 2.0 * tile.columns * plan.slots / time.median_us / 1e6}});
  }
}

void MeasureGemmPass(const StepBench& bench) {
  const auto time = [&](const PassPlan& plan, const GemmParts& parts) {
    return TimedWork(bench.card.device, bench.steps.stream(),
                     [&] { bench.steps.EnqueueGemm(plan, parts); })
        .Time()
        .median_us;
  };
  constexpr GemmParts kProducts{.gate = false, .select = false, .finish = false};
  for (const unsigned batch : bench.Cases(kBatches)) {
    for (const unsigned k : bench.Cases({10U, 100U})) {
      const PassPlan plan = bench.GemmPlan(batch, k);
      bench.steps.Fill(plan, bench.First(std::min(batch, plan.slots)), k);
      GemmParts one_stream = kProducts;
      one_stream.two_streams = false;
      const double products = std::min(time(plan, one_stream), time(plan, kProducts));
      const double pass = time(plan, {});
      bench.log.Add("gemm-pass", bench.shape,
                    {{"batch", batch},
                     {"k", k},
                     {"tile_rows", plan.tile_rows},
                     {"products_us", products},
                     {"pass_us", pass},
                     {"one_stream_us", time(plan, {.two_streams = false})},
                     {"overhead", pass / products - 1}});
    }
  }
}

void MeasureGateAndFinish(const StepBench& bench) {
  Device& device = bench.card.device;
  const cudaStream_t stream = bench.steps.stream();
  for (const unsigned batch : bench.Cases(kBatches)) {
    for (const unsigned k : bench.Cases({10U, 100U, 1'000U})) {
      const PassPlan plan = bench.GemmPlan(batch, k);
      bench.steps.Fill(plan, bench.First(std::min(batch, plan.slots)), k);
      bench.steps.EnqueueGemm(plan, {.finish = false});
      const kernels::Pass pass = bench.steps.PassOf(plan);
      const std::size_t bytes = std::size_t{plan.slots} * plan.capacity * sizeof(kernels::Hit);
      const DeviceArray<std::byte> kept(device, bytes, MemoryKind::kWorkspace);
      const auto copy = [&](void* to, const void* from) {
        device.Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                     "cudaMemcpyAsync");
      };
      copy(kept.get(), pass.hits);
      device.AwaitOrLose(stream);
      const TimedWork restore(device, stream, [&] { copy(pass.hits, kept.get()); });
      const TimedWork finish(device, stream, [&] {
        copy(pass.hits, kept.get());
        bench.steps.EnqueueFinish(plan);
      });
      const double finish_us = TimeBeyond(finish, restore).median_us;
      // The gate reads the first tile, which later ones have overwritten.
      bench.steps.EnqueueProduct(plan, bench.steps.TileAt(plan, 0, 0), 0);
      const double gate_us =
          TimedWork(device, stream, [&] { bench.steps.EnqueueGate(plan); }).Time().median_us;
      bench.log.Add("gate-and-finish", bench.shape,
                    {{"batch", batch},
                     {"k", k},
                     {"one_launch", plan.finishes_in_one_launch},
                     {"gate_us", gate_us},
                     {"finish_us", finish_us},
                     {"sum_us", gate_us + finish_us}});
    }
  }
}

}  // namespace simile::bench::gpu
