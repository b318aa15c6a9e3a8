#pragma once

#include <cstddef>
#include <optional>

#include "backend/cuda/kernel_variants.h"
#include "backend/gpu_memory.h"
#include "backend/gpu_options.h"
#include "kernels/score_tile.h"

namespace simile::backend::cuda {

// How a batch is answered. Pure arithmetic: graphs are captured for these plans, and tests and
// benches print them.

// The ranks of a query's gates. Its best rows pass each, except with a probability of 1e-6.
struct GateRanks {
  unsigned first = 0;   // in the sample
  unsigned second = 0;  // among the first rows' groups; 0: no second gate
};

// One read of the rows for a batch of queries, with every size that its kernels need.
struct PassPlan {
  const KernelVariant* variant = nullptr;
  unsigned slots = 0;        // queries it holds
  unsigned capacity = 0;     // hits per query
  unsigned best_stride = 0;  // hits per answer
  double sample_share = 0;   // of the rows, which set the gates
  FinishForm finish = FinishForm::kSteps;
  bool is_mapped = false;      // queries and answers in host memory that kernels use; else copied
  bool lends_answers = false;  // in pinned memory, if a block is free; else they are copied
  // The fused scan
  kernels::RowScanShape shape;
  unsigned sample_groups = 0;
  unsigned second_gate_share = 0;  // one row in this many sets a second gate; 0: there is none
  unsigned second_tiles = 0;       // that set it
  double second_share = 0;         // of the rows
  // GEMM and select
  unsigned tile_rows = 0;
  unsigned sample_rows = 0;
  unsigned sample_group = 0;

  PassStrategy strategy() const { return variant->strategy; }
  // About what pruning leaves of a query's hits; estimated, and only speed depends on it.
  unsigned rows_rescored() const { return best_stride + best_stride / 8; }
  // So that the query's `reach` best rows pass.
  //   reach  hits wanted plus rows excluded
  GateRanks FindRanks(std::size_t reach) const;
};

// How a pass runs where the card's own times decided (pass_choices.h), not the rules of PlanPass.
// The plan departs from a part that the batch or the workspace does not admit.
struct PassChoice {
  const KernelVariant* variant = nullptr;
  FinishForm finish = FinishForm::kSteps;
  bool is_mapped = false;
  unsigned second_gate_share = 0;  // as PassPlan's
  double tile_factor = 1;          // of the rules' tile

  friend bool operator==(const PassChoice&, const PassChoice&) = default;
};
// The choice that leads to this plan. tile_factor is 1.
PassChoice ToChoice(const PassPlan& plan);

// What a batch needs of its pass.
struct PassDemand {
  unsigned queries = 0;
  unsigned hits_max = 0;   // the most hits that a query wants
  unsigned reach_max = 0;  // the same plus the rows that it excludes
  bool int8_rows = false;  // whether the int8 scan may be used
  unsigned growth = 0;     // how often the capacity for hits is doubled; see ResidentRows
  // How far gates lie below the sample's, in units: twice the bound of the strategy.
  double scan_margin = 0;
  double int8_margin = 0;  // about how far the int8 scan's hits reach below the gate
  double gemm_margin = 0;
  const PassChoice* choice = nullptr;  // for its class; borrowed; null: the rules decide
};

// The plan by the demand's choice where there is one that can be planned, else by the rules: for
// these queries, or for the first plan->slots of them where one pass cannot hold all.
// Empty where no sample gives a gate: too few rows, or too large a share of them wanted. Then
// canonical scores of all rows cost less.
std::optional<PassPlan> PlanPass(const CardTraits& card, const GpuTuning& tuning,
                                 const WorkspaceSize& workspace, const SegmentSize& segment,
                                 const PassDemand& demand);

// The same by this variant alone: empty also where its limits do not admit them. A choice of
// another variant does not count.
std::optional<PassPlan> PlanVariant(const KernelVariant& variant, const CardTraits& card,
                                    const GpuTuning& tuning, const WorkspaceSize& workspace,
                                    const SegmentSize& segment, const PassDemand& demand);

// A scan's plan of one gate with a second one, which one row in so many sets; the capacity stays.
// Empty where none can be: it takes a tile for each of its groups, and more rows than the sample.
std::optional<PassPlan> WithSecondGate(PassPlan plan, unsigned row_count, unsigned one_row_in);

// Expected hits per query for a gate of this rank: rows lie in random order, so `rank` of `groups`
// random groups of `group_rows` rows hold one.
double ExpectedHits(double rank, double groups, double group_rows, double row_count);

}  // namespace simile::backend::cuda
