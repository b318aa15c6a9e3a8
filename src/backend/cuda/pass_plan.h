#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cuda/card_traits.h"
#include "backend/gpu_options.h"
#include "kernels/row_scan.h"
#include "kernels/sample_gate.h"

namespace simile::backend::cuda {

// How a batch is answered. Pure arithmetic: what is planned here is what graphs are captured for
// and what the tests and the benches print.

// Rows of a segment as kernels see them.
struct SegmentSize {
  unsigned row_count = 0;
  unsigned stride = 0;  // padded dimensions
};

// One read of the fp16 rows for a batch of queries, with everything that its kernels are told.
struct PassPlan {
  enum class Road : std::uint8_t { kRowScan, kGemm };

  Road road = Road::kRowScan;
  unsigned slots = 0;              // queries it has room for
  unsigned capacity = 0;           // hits of a query
  unsigned best_stride = 0;        // hits of an answer
  double sample_share = 0;         // of the rows, which set the gates
  bool finishes_by_block = false;  // one block a query, in the scan's own launch; else in steps
  // The fused scan
  kernels::RowScanShape shape;
  unsigned sample_groups = 0;
  // GEMM and select
  unsigned tile_rows = 0;
  unsigned sample_rows = 0;
  unsigned sample_group = 0;

  // The rank that a query's gate takes in the sample, so that its `reach` best rows come through
  // but for one chance in a million.
  //   reach  hits wanted and rows left out
  unsigned RankOf(std::size_t reach) const;
};

// What a pass must be able to do.
struct PassDemand {
  unsigned queries = 0;
  unsigned hits_max = 0;   // the most hits that a query wants
  unsigned reach_max = 0;  // and with the rows it leaves out
  unsigned growth = 0;     // how often room for hits is doubled; see ResidentRows
  // How far gates lie below the sample's, in units: twice the bound of the road.
  double scan_margin = 0;
  double gemm_margin = 0;
};

// The plan for so many queries, or for as many of them as one pass can take: plan->slots says.
// Empty where no sample is good for a gate: too few rows, or hits wanted in too large a share of
// them. Then canonical scores of all rows are the shorter way.
std::optional<PassPlan> PlanPass(const CardTraits& card, const GpuTuning& tuning,
                                 const WorkspaceSize& workspace, const SegmentSize& segment,
                                 const PassDemand& demand);

// Hits per query that a gate of this rank lets through, on average: rows lie in random order, so
// that rank of `groups` random groups of `group_rows` rows hold one.
double ExpectedHits(double rank, double groups, double group_rows, double row_count);

}  // namespace simile::backend::cuda
