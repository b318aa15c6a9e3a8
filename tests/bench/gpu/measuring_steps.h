#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/gpu/bench_truth.h"
#include "bench/gpu/card.h"
#include "bench/gpu/pass_steps.h"
#include "bench/gpu/step_log.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// The fused scans, as they are preferred: what is decided about one need not hold for the other.
inline constexpr std::array kScans{backend::cuda::PassStrategy::kInt8Scan,
                                   backend::cuda::PassStrategy::kRowScan};

// One segment on the card, and its queries.
struct StepBench {
  Card& card;
  PassSteps& steps;
  MatrixView queries;  // at least 1,000
  std::string shape;   // "62423x384"
  unsigned k = 10;     // the usual one of this shape
  StepLog& log;
  std::vector<std::string> variants = {};  // those that are timed; empty: all
  const BenchTruth* truth = nullptr;       // of the first queries; for MeasureVariants
  // Of a step's batch sizes, k and the like, so many are measured; fewer in dry runs.
  std::size_t cases_max = std::numeric_limits<std::size_t>::max();

  unsigned row_count() const { return steps.rows().size().row_count; }
  unsigned stride() const { return steps.rows().size().stride; }
  // The first pass of a batch by one strategy. nullopt: a scan has no rows in its form, or too many
  // queries or hits for rows of this length.
  std::optional<backend::cuda::PassPlan> PlanBy(backend::cuda::PassStrategy strategy,
                                                unsigned batch, unsigned k_wanted,
                                                const backend::GpuTuning& tuning = {}) const;
  // Throws std::bad_optional_access where there is none.
  backend::cuda::PassPlan GemmPlan(unsigned batch, unsigned k_wanted) const {
    return PlanBy(backend::cuda::PassStrategy::kGemm, batch, k_wanted).value();
  }
  // The cases that are measured.
  template <class Value, std::size_t count>
  std::vector<Value> Cases(const Value (&all)[count]) const {
    return {all, all + std::min(count, cases_max)};
  }
  MatrixView First(std::size_t count) const { return queries.Slice(0, count); }
};

// In the order in which they run; later decisions depend on earlier results: every variant of a
// whole pass, the limit of the fused scan, its other parts, GEMM. All throw DeviceError.

// Every row of KernelVariants() at every batch size that it or several of its passes can answer. A
// case that fails is logged as such and ends no other, unless the device is lost; then throws the
// first error.
void MeasureVariants(const StepBench& bench);

// The scans of kScans. Reading alone, for every ring shape that fits this card, and without a ring.
void MeasureScanShapes(const StepBench& bench);
// What sample, hits and finish add to the reading; warm and with a cold L2. Then the whole scan by
// the share of rows that set a second gate, planned or not.
void MeasureScanParts(const StepBench& bench);
// The finish of a scan in the scan's launch, in one of its own with a block a query, and in three.
void MeasureFinish(const StepBench& bench);

// The whole pass and its products alone, by tile size, with and without a part of the L2 set aside
// for the tile; products with fp32 scores.
void MeasureTiles(const StepBench& bench);
// topk_fp16.cu alone on one tile, by hits.
void MeasureSelect(const StepBench& bench);
// A whole pass compared with its products alone, on one stream and on two.
void MeasureGemmPass(const StepBench& bench);
// sample_gate.cu and finish.cu alone, after a pass through GEMM.
void MeasureGateAndFinish(const StepBench& bench);

// The share of rows at which a pass with a mask becomes faster than a list of rows. Then the number
// of rows from which on a pass is faster than canonical scores of all.
void MeasureGather(const StepBench& bench);
// A scan from host to host, its queries and answers copied or in mapped memory.
void MeasureExchange(const StepBench& bench);
// Canonical scores of random rows, in bytes per second.
void MeasureRescore(const StepBench& bench);

}  // namespace simile::bench::gpu
