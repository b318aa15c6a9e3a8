#include "bench/gpu/planned_passes.h"

#include <algorithm>
#include <optional>

#include "backend/cuda/batch_search.h"

namespace simile::bench::gpu {

using backend::cuda::PassPlan;

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

std::vector<PlannedPass> PlanBatch(const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k) {
  const unsigned wanted = std::min(k, rows.size().row_count);
  std::vector<PlannedPass> passes;
  for (std::size_t first = 0; first < batch; first += passes.back().count) {
    const std::size_t left = batch - first;
    const std::optional<PassPlan> plan =
        PlanPass(card, backend::GpuTuning{}, workspace, rows.size(),
                 MakeDemand(rows, left, wanted, wanted, true));
    if (!plan) return {};
    passes.push_back({*plan, first, std::min<std::size_t>(plan->slots, left)});
  }
  return passes;
}

}  // namespace simile::bench::gpu
