#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/pass_plan.h"
#include "backend/cuda/pass_runner.h"
#include "backend/cuda/resident_rows.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// What a server would keep of a segment on the card: as much as fits, and int8 rows where the card
// multiplies them.
backend::ResidentSize ResidentSizeOf(const backend::cuda::Device& device, MatrixView rows);

// Queries without a filter, for `wanted` hits each.
std::vector<backend::cuda::DeviceQuery> UnfilteredQueries(std::size_t count, unsigned wanted);

// One pass of a batch whose queries all want k hits without a filter.
struct PlannedPass {
  backend::cuda::PassPlan plan;
  std::size_t first = 0;
  std::size_t count = 0;
};
// All passes of a batch as the server plans them; empty where it would use none.
std::vector<PlannedPass> PlanBatch(const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k);

}  // namespace simile::bench::gpu
