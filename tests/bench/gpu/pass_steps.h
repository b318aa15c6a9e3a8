#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include <absl/status/statusor.h>

#include "backend/cuda/device.h"
#include "backend/cuda/pass_plan.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"
#include "kernels/pass.h"
#include "kernels/row_scan.h"
#include "kernels/score_tile.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// Which parts of a pass through GEMM are put into the stream.
struct GemmParts {
  bool products = true;
  bool gate = true;
  bool select = true;
  bool finish = true;
  bool two_streams = true;
};

// How the fused scan is run where it is not as planned.
struct ScanParts {
  bool finish = true;
  // Added to every gate. A large one lets no row through: what is left is the reading.
  float gate_rise = 0;
  unsigned sample_groups = 0;  // 0: as planned
};

// The steps of the engine's passes (backend/cuda/pass_runner.cpp), each to be timed alone: on the
// device only, without the copies to it and from it. CheckAgainst proves that they are the same.
// Borrows everything. All throw DeviceError.
class PassSteps {
 public:
  PassSteps(backend::cuda::Device& device, backend::cuda::Workspace& workspace,
            backend::cuda::ResidentRows& rows)
      : device_(device), workspace_(workspace), rows_(rows) {}

  cudaStream_t stream() const { return workspace_.stream(0); }
  backend::cuda::Device& device() const { return device_; }
  backend::cuda::Workspace& workspace() const { return workspace_; }
  backend::cuda::ResidentRows& rows() const { return rows_; }

  // Puts the queries, each wanting k hits, where the plan's kernels look for them; waits.
  //   rank  of the gates in the sample; 0: as planned
  // REQUIRES: at most plan.slots queries of unit length, cosine rows.
  void Fill(const backend::cuda::PassPlan& plan, MatrixView queries, unsigned k, unsigned rank = 0);

  // Put the work into the stream, and do not wait.
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

  // Runs the engine's own pass and these steps, and compares verdicts and proven answers. Returns
  // how many answers were not proven.
  // Errors: kInternal: what is timed here is not what the engine does.
  absl::StatusOr<std::size_t> CheckAgainst(const backend::cuda::PassPlan& plan, MatrixView queries,
                                           unsigned k);

 private:
  backend::cuda::Device& device_;
  backend::cuda::Workspace& workspace_;
  backend::cuda::ResidentRows& rows_;
};

// The passes that a batch is split into, all queries wanting k hits of a segment without filter.
struct PlannedPass {
  backend::cuda::PassPlan plan;
  std::size_t first = 0;
  std::size_t count = 0;
};
// Empty where the engine would not use a pass at all.
std::vector<PlannedPass> PlanBatch(const backend::cuda::CardTraits& card,
                                   const backend::GpuTuning& tuning,
                                   const backend::WorkspaceSize& workspace,
                                   const backend::cuda::SegmentSize& segment, std::size_t batch,
                                   unsigned k);

}  // namespace simile::bench::gpu
