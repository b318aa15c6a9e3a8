#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include <absl/status/statusor.h>

#include "backend/cuda/device.h"
#include "backend/cuda/pass_plan.h"
#include "backend/cuda/pass_runner.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"
#include "kernels/pass.h"
#include "kernels/row_scan.h"
#include "kernels/score_tile.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// What a server would keep of a segment on the card: as much as fits, and int8 rows where the card
// multiplies them.
backend::ResidentSize ResidentSizeOf(const backend::cuda::Device& device, MatrixView rows);

// The enqueued parts of a pass by GEMM.
struct GemmParts {
  bool products = true;
  bool gate = true;
  bool select = true;
  bool finish = true;
  bool two_streams = true;
};

// How a run of the fused scan differs from the plan.
struct ScanParts {
  bool finish = true;
  // Added to every gate. With a large one no row passes, so only reading is timed.
  float gate_rise = 0;
  unsigned sample_groups = 0;  // 0: as planned
};

// The steps of the engine's passes (backend/cuda/pass_runner.cpp), to be timed one by one: on the
// device only, without copies to and from it. CheckAgainst shows that they give the engine's
// answers. Borrows everything. All methods throw DeviceError.
class PassSteps {
 public:
  PassSteps(backend::cuda::Device& device, backend::cuda::Workspace& workspace,
            backend::cuda::ResidentRows& rows)
      : device_(device), workspace_(workspace), rows_(rows) {}

  cudaStream_t stream() const { return workspace_.stream(0); }
  backend::cuda::Device& device() const { return device_; }
  backend::cuda::Workspace& workspace() const { return workspace_; }
  backend::cuda::ResidentRows& rows() const { return rows_; }

  // Copies the queries, each wanting k hits, to the plan's buffers; waits.
  //   rank  of the gates in the sample; 0: as planned
  // REQUIRES: at most plan.slots queries of unit length, cosine rows.
  void Fill(const backend::cuda::PassPlan& plan, MatrixView queries, unsigned k, unsigned rank = 0);

  // Enqueue the work and do not wait.
  void EnqueueScan(const backend::cuda::PassPlan& plan, const ScanParts& parts = {}) const;
  void EnqueueGemm(const backend::cuda::PassPlan& plan, const GemmParts& parts = {}) const;
  void EnqueuePass(const backend::cuda::PassPlan& plan) const;
  void EnqueueGate(const backend::cuda::PassPlan& plan) const;
  void EnqueueFinish(const backend::cuda::PassPlan& plan) const;

  // The product of one tile into the workspace's tile `side`.
  void EnqueueProduct(const backend::cuda::PassPlan& plan, const kernels::ScoreTile& tile,
                      unsigned side) const;

  kernels::Pass PassOf(const backend::cuda::PassPlan& plan) const;
  kernels::ScoreTile TileAt(const backend::cuda::PassPlan& plan, unsigned first,
                            unsigned side) const;

  // Runs the engine's own pass and these steps, and compares proofs and proven answers. Returns how
  // many answers were not proven.
  // Errors: kInternal where they differ.
  absl::StatusOr<std::size_t> CheckAgainst(const backend::cuda::PassPlan& plan, MatrixView queries,
                                           unsigned k);

 private:
  backend::cuda::Device& device_;
  backend::cuda::Workspace& workspace_;
  backend::cuda::ResidentRows& rows_;
};

// Queries that all want so many hits, of all rows.
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
// The same by one variant, in the fewest passes of equal size; empty where it cannot.
std::vector<PlannedPass> PlanBatch(const backend::cuda::KernelVariant& variant,
                                   const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k, backend::GpuTuning tuning = {});
// The same by the preferred variant of a strategy.
std::vector<PlannedPass> PlanBatch(backend::cuda::PassStrategy strategy,
                                   const backend::cuda::CardTraits& card,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::ResidentRows& rows, std::size_t batch,
                                   unsigned k, const backend::GpuTuning& tuning = {});

}  // namespace simile::bench::gpu
