#include "bench/gpu/pass_steps.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "backend/cuda/batch_search.h"
#include "bench/gpu/query_specs.h"
#include "kernels/convert_to_fp16.h"
#include "kernels/finish.h"
#include "kernels/sample_gate.h"
#include "kernels/topk_fp16.h"

namespace simile::bench::gpu {

using backend::LayAnswers;
using backend::LayQueries;
using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;
using kernels::Pass;
using kernels::ScoreTile;

backend::ResidentSize ResidentSizeOf(const backend::cuda::Device& device, MatrixView rows) {
  return backend::PlanResidentIn(
      device.free_bytes(),
      {static_cast<unsigned>(rows.row_count()), static_cast<unsigned>(rows.padded_dim())},
      backend::cuda::HasInt8Scan(device.traits().code_capability));
}

void PassSteps::Fill(const PassPlan& plan, MatrixView queries, unsigned k, unsigned rank) {
  const std::size_t stride = rows_.size().stride;
  const auto block = LayQueries(plan.slots, stride);
  std::byte* const host = workspace_.host_queries();
  std::memset(host, 0, block.bytes);
  auto* terms = reinterpret_cast<kernels::QueryTerms*>(host + block.terms_at);
  for (std::size_t i = 0; i < queries.row_count(); ++i) {
    terms[i].wanted = std::min(k, rows_.size().row_count);
    terms[i].reached = kernels::kLowestScore;
    const backend::cuda::GateRanks ranks = plan.RanksOf(terms[i].wanted);
    terms[i].rank = rank != 0 ? rank : ranks.first;
    terms[i].second_rank = ranks.second;
    terms[i].unit_of_query = 1;
    terms[i].score_of_unit = 1;
  }
  std::memcpy(host + block.vectors_at, queries.data(), queries.bytes());
  device_.Check(
      cudaMemcpyAsync(workspace_.queries(), host, block.bytes, cudaMemcpyHostToDevice, stream()),
      "cudaMemcpyAsync");
  if (plan.strategy() == PassStrategy::kGemm) {
    device_.Check(
        kernels::LaunchConvertQueriesToFp16(PassOf(plan), workspace_.fp16_queries(), stream()),
        "convert_queries_to_fp16");
  } else {
    device_.Check(plan.variant->prepare(plan.shape, device_.traits().shared_bytes_max),
                  "cudaFuncSetAttribute");
  }
  device_.AwaitOrLose(stream());
}

Pass PassSteps::PassOf(const PassPlan& plan) const {
  return backend::cuda::PassRunner(device_, workspace_, rows_).PassOf(plan);
}

void PassSteps::EnqueueScan(const PassPlan& plan, const ScanParts& parts) const {
  const backend::cuda::PassRunner runner(device_, workspace_, rows_);
  const Pass pass = runner.PassOf(plan);
  kernels::RowScanArguments arguments = runner.ScanArguments(plan, pass);
  arguments.finishes = parts.finish && plan.finishes_in_one_launch;
  arguments.margin -= parts.gate_rise;
  if (parts.sample_groups != 0) arguments.sample_groups = parts.sample_groups;
  device_.Check(
      plan.variant->launch(plan.shape, device_.traits().multiprocessors, pass, arguments, stream()),
      plan.variant->name.data());
  if (parts.finish && !arguments.finishes) EnqueueFinish(plan);
}

ScoreTile PassSteps::TileAt(const PassPlan& plan, unsigned first, unsigned side) const {
  return {workspace_.tile(side), plan.tile_rows,
          std::min(plan.tile_rows, rows_.size().row_count - first), first};
}

void PassSteps::EnqueueProduct(const PassPlan& plan, const ScoreTile& tile, unsigned side) const {
  const float one = 1, zero = 0;
  const auto stride = static_cast<int>(rows_.size().stride);
  device_.Check(
      device_.blas().gemm(workspace_.blas(side), CUBLAS_OP_T, CUBLAS_OP_N,
                          static_cast<int>(tile.columns), static_cast<int>(plan.slots), stride,
                          &one, rows_.fp16_rows() + std::size_t{tile.first} * rows_.size().stride,
                          CUDA_R_16F, stride, workspace_.fp16_queries(), CUDA_R_16F, stride, &zero,
                          workspace_.tile(side), CUDA_R_16F, static_cast<int>(plan.tile_rows),
                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

void PassSteps::EnqueueGate(const PassPlan& plan) const {
  const Pass pass = PassOf(plan);
  const kernels::ScoreSample sample{plan.sample_rows, plan.sample_group, 2 * pass.bound};
  device_.Check(kernels::LaunchSampleGate(pass, TileAt(plan, 0, 0), sample, stream()),
                "sample_gate");
}

void PassSteps::EnqueueFinish(const PassPlan& plan) const {
  const Pass pass = PassOf(plan);
  device_.Check(plan.finishes_in_one_launch
                    ? kernels::LaunchFinish(pass, stream())
                    : kernels::LaunchFinishInSteps(pass, plan.rows_rescored(), stream()),
                "finish");
}

void PassSteps::EnqueueGemm(const PassPlan& plan, const GemmParts& parts) const {
  const Pass pass = PassOf(plan);
  if (parts.products) {
    device_.Check(kernels::LaunchConvertQueriesToFp16(pass, workspace_.fp16_queries(), stream()),
                  "convert_queries_to_fp16");
  }
  if (parts.select) {
    device_.Check(cudaMemsetAsync(pass.hit_counts, 0, plan.slots * sizeof(unsigned), stream()),
                  "cudaMemsetAsync");
  }
  const cudaStream_t other = workspace_.stream(1);
  if (parts.two_streams) {
    device_.Check(cudaEventRecord(workspace_.forked(), stream()), "cudaEventRecord");
    device_.Check(cudaStreamWaitEvent(other, workspace_.forked(), 0), "cudaStreamWaitEvent");
  }
  for (unsigned first = 0, i = 0; first < pass.row_count; first += plan.tile_rows, ++i) {
    const unsigned side = parts.two_streams ? i % 2 : 0;
    const ScoreTile tile = TileAt(plan, first, side);
    if (parts.products) EnqueueProduct(plan, tile, side);
    if (i == 0 && parts.gate) {
      EnqueueGate(plan);
      device_.Check(cudaEventRecord(workspace_.gated(), stream()), "cudaEventRecord");
    } else if (i == 1 && parts.gate && parts.two_streams) {
      device_.Check(cudaStreamWaitEvent(other, workspace_.gated(), 0), "cudaStreamWaitEvent");
    }
    if (!parts.select) continue;
    device_.Check(kernels::LaunchTopkFp16(pass, tile, workspace_.stream(side)), "topk_fp16");
  }
  if (parts.two_streams) {
    device_.Check(cudaEventRecord(workspace_.joined(), other), "cudaEventRecord");
    device_.Check(cudaStreamWaitEvent(stream(), workspace_.joined(), 0), "cudaStreamWaitEvent");
  }
  if (parts.finish) EnqueueFinish(plan);
}

void PassSteps::EnqueuePass(const PassPlan& plan) const {
  if (backend::cuda::IsScan(plan.strategy())) {
    EnqueueScan(plan);
  } else {
    EnqueueGemm(plan);
  }
}

absl::StatusOr<std::size_t> PassSteps::CheckAgainst(const PassPlan& plan, MatrixView queries,
                                                    unsigned k) {
  const std::vector<QuerySpec> specs = AllWanting(queries.row_count(), k);
  const auto resolved = UnfilteredQueries(queries.row_count(), std::min(k, rows_.size().row_count));
  backend::cuda::PassRunner runner(device_, workspace_, rows_);
  runner.Run(plan, {queries, specs}, resolved);
  const auto block = LayAnswers(plan.slots, plan.best_stride);
  const std::byte* host = workspace_.host_answers();
  const std::vector<std::byte> engines(host, host + block.bytes);

  Fill(plan, queries, k);
  device_.Check(cudaMemsetAsync(workspace_.answers(), 0, block.bytes, stream()), "cudaMemsetAsync");
  EnqueuePass(plan);
  device_.Check(cudaMemcpyAsync(workspace_.host_answers(), workspace_.answers(), block.bytes,
                                cudaMemcpyDeviceToHost, stream()),
                "cudaMemcpyAsync");
  device_.AwaitOrLose(stream());
  std::size_t unproven = 0;
  for (std::size_t i = 0; i < resolved.size(); ++i) {
    kernels::Proof theirs{};
    std::memcpy(&theirs, engines.data() + block.proofs_at + i * sizeof(theirs), sizeof(theirs));
    const kernels::Proof ours = runner.ProofOf(i);  // of the last pass
    const std::size_t at = block.best_at + i * plan.best_stride * sizeof(kernels::Key);
    const std::size_t bytes = resolved[i].wanted * sizeof(kernels::Key);
    const bool proven = ours.flag == kernels::kProven;
    if (!proven) ++unproven;
    if (ours.flag == theirs.flag &&
        (!proven || std::memcmp(engines.data() + at, host + at, bytes) == 0)) {
      continue;
    }
    return absl::InternalError(
        fmt::format("query {} of {}, k {}: the timed steps do not give the engine's answer", i,
                    resolved.size(), k));
  }
  return unproven;
}

std::vector<backend::cuda::DeviceQuery> UnfilteredQueries(std::size_t count, unsigned wanted) {
  std::vector<backend::cuda::DeviceQuery> queries(count);
  for (std::size_t i = 0; i < count; ++i) {
    queries[i].index = static_cast<std::uint32_t>(i);
    queries[i].wanted = wanted;
  }
  return queries;
}

namespace {

// In the fewest passes of at most queries_max queries, of equal size.
template <class Plan>
std::vector<PlannedPass> PlanAll(std::size_t batch, std::size_t queries_max, Plan plan_for) {
  std::vector<PlannedPass> passes;
  for (std::size_t first = 0; first < batch;) {
    const std::size_t left = batch - first;
    const std::size_t pass_count = (left - 1) / queries_max + 1;
    const std::size_t share = (left - 1) / pass_count + 1;
    const std::optional<PassPlan> plan = plan_for(share);
    if (!plan) return {};
    passes.push_back({*plan, first, std::min<std::size_t>(plan->slots, share)});
    first += passes.back().count;
  }
  return passes;
}

}  // namespace

std::vector<PlannedPass> PlanBatch(const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k) {
  const unsigned wanted = std::min(k, rows.size().row_count);
  return PlanAll(batch, batch, [&](std::size_t count) {
    return PlanPass(card, backend::GpuTuning{}, workspace, rows.size(),
                    DemandOf(rows, count, wanted, wanted, true));
  });
}

std::vector<PlannedPass> PlanBatch(const backend::cuda::KernelVariant& variant,
                                   const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k, backend::GpuTuning tuning) {
  const unsigned wanted = std::min(k, rows.size().row_count);
  tuning.scan_queries_max = variant.queries_max;
  return PlanAll(batch, variant.queries_max, [&](std::size_t count) {
    return PlanVariant(variant, card, tuning, workspace, rows.size(),
                       DemandOf(rows, count, wanted, wanted, true));
  });
}

std::vector<PlannedPass> PlanBatch(PassStrategy strategy, const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k, const backend::GpuTuning& tuning) {
  for (const backend::cuda::KernelVariant& variant : backend::cuda::KernelVariants()) {
    if (variant.strategy != strategy) continue;
    std::vector<PlannedPass> passes = PlanBatch(variant, card, workspace, rows, batch, k, tuning);
    if (!passes.empty()) return passes;
  }
  return {};
}

}  // namespace simile::bench::gpu
