#pragma once

#include <string>
#include <vector>

#include "bench/gpu/card.h"
#include "bench/gpu/pass_steps.h"
#include "bench/gpu/step_log.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// One segment on the card, and what is asked of it.
struct StepBench {
  Card& card;
  PassSteps& steps;
  MatrixView queries;  // at least 1,000
  std::string shape;   // "62423x384"
  unsigned k = 10;     // as this shape is mostly asked
  StepLog& log;

  unsigned row_count() const { return steps.rows().size().row_count; }
  unsigned stride() const { return steps.rows().size().stride; }
  // The first pass of a batch down one road. REQUIRES: there is one.
  backend::cuda::PassPlan ScanPlan(unsigned batch, unsigned k_wanted) const;
  backend::cuda::PassPlan GemmPlan(unsigned batch, unsigned k_wanted) const;
  MatrixView First(std::size_t count) const { return queries.Slice(0, count); }
};

// The order in which they are run is that in which their outcomes decide about each other: first
// what the fused scan can reach, then what surrounds it, then GEMM, then where roads cross. All
// throw DeviceError.

// row_scan.cu. Reading alone, for every shape of rings that fits this card, or none.
void MeasureScanShapes(const StepBench& bench);
// What sample, hits and finish add to the reading; warm and with a cold L2.
void MeasureScanParts(const StepBench& bench);
// finish.cu after a scan, in one launch and in three.
void MeasureFinish(const StepBench& bench);

// Products alone, by tile size, with scores in halves and in floats, with and without a part of the
// L2 set aside for the tile.
void MeasureTiles(const StepBench& bench);
// topk_fp16.cu alone on one tile, by hits.
void MeasureSelect(const StepBench& bench);
// A whole pass against its products alone, on one stream and on two.
void MeasureGemmPass(const StepBench& bench);
// sample_gate.cu and finish.cu alone, after a pass through GEMM.
void MeasureGateAndFinish(const StepBench& bench);

// Where the scan, in as many passes as it takes, and GEMM cross.
void MeasureRoads(const StepBench& bench);
// Where a list of rows and a pass with a mask cross.
void MeasureGather(const StepBench& bench);
// Canonical scores of random rows: bytes a second.
void MeasureRescore(const StepBench& bench);

}  // namespace simile::bench::gpu
