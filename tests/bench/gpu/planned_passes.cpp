#include "bench/gpu/planned_passes.h"

#include <algorithm>
#include <optional>

#include "backend/cuda/batch_search.h"

namespace simile::bench::gpu {

using backend::cuda::PassPlan;
using backend::cuda::PassStrategy;

backend::ResidentSize ResidentSizeOf(const backend::cuda::Device& device, MatrixView rows) {
  return backend::PlanResidentIn(
      device.free_bytes(),
      {static_cast<unsigned>(rows.row_count()), static_cast<unsigned>(rows.padded_dim())},
      backend::cuda::HasInt8Scan(device.traits().code_capability));
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
