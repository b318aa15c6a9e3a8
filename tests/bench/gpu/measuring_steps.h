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
#include "bench/gpu/planned_passes.h"
#include "bench/gpu/step_log.h"
#include "simile/matrix_view.h"

namespace simile::bench::gpu {

// The fused scans, as they are preferred: what is decided about one need not hold for the other.
inline constexpr std::array kScans{backend::cuda::PassStrategy::kInt8Scan,
                                   backend::cuda::PassStrategy::kRowScan};

// One segment on the card, and its queries.
struct StepBench {
  Card& card;
  backend::cuda::ResidentRows& rows;
  MatrixView queries;  // at least 1,000
  std::string shape;   // "62423x384"
  unsigned k = 10;     // the usual one of this shape
  StepLog& log;
  const BenchTruth& truth;                 // of the first queries
  std::vector<std::string> variants = {};  // those that MeasureVariants times; empty: all
  // Of a step's batch sizes, k and the like, so many are measured; fewer in dry runs.
  std::size_t cases_max = std::numeric_limits<std::size_t>::max();

  unsigned row_count() const { return rows.size().row_count; }
  // The first pass of a batch by one strategy. nullopt: a scan has no rows in its form, or too many
  // queries or hits for rows of this length.
  std::optional<backend::cuda::PassPlan> PlanBy(backend::cuda::PassStrategy strategy,
                                                unsigned batch, unsigned k_wanted,
                                                const backend::GpuTuning& tuning = {}) const;
  // The cases that are measured.
  template <class Value, std::size_t count>
  std::vector<Value> Cases(const Value (&all)[count]) const {
    return {all, all + std::min(count, cases_max)};
  }
  MatrixView First(std::size_t count) const { return queries.Slice(0, count); }
};

// Whole passes of the engine by each of its choices, planned or not, each with whether its proven
// answers are the plain scan's. All throw DeviceError.

// Every row of KernelVariants() at every batch size that it or several of its passes can answer.
void MeasureVariants(const StepBench& bench);
// The scans of kScans by the share of rows that set a second gate.
void MeasureSecondGates(const StepBench& bench);
// The scans of kScans, finished by one block a query and in several launches.
void MeasureFinish(const StepBench& bench);
// Passes by GEMM, by tile size.
void MeasureTiles(const StepBench& bench);

// The share of rows at which a pass with a mask becomes faster than a list of rows. Then the number
// of rows from which on a pass is faster than canonical scores of all.
void MeasureGather(const StepBench& bench);
// A scan from host to host, its queries and answers copied or in mapped memory.
void MeasureExchange(const StepBench& bench);

}  // namespace simile::bench::gpu
