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

// The ranks of a query's gates. The query's best rows pass each gate, except with a probability of
// 1e-6.
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
  double sample_share = 0;   // share of the rows that sets the gates
  FinishForm finish = FinishForm::kSteps;
  bool is_mapped = false;  // queries and answers are in host memory that kernels use; else copied
  bool lends_answers = false;  // answers are lent in pinned memory if a block is free; else copied
  // The fused scan
  kernels::RowScanShape shape;
  unsigned sample_groups = 0;
  unsigned second_gate_share = 0;  // one row in this many sets a second gate; 0: no second gate
  unsigned second_tiles = 0;       // tiles that set the second gate
  double second_share = 0;         // share of the rows in these tiles
  // GEMM and select
  unsigned tile_rows = 0;
  unsigned sample_rows = 0;
  unsigned sample_group = 0;

  PassStrategy strategy() const { return variant->strategy; }
  // The estimated hits of a query that pruning leaves. Only speed depends on it.
  unsigned rows_rescored() const { return best_stride + best_stride / 8; }
  // The ranks of gates that the query's `reach` best rows pass.
  //   reach  wanted hits plus excluded rows
  GateRanks FindRanks(std::size_t reach) const;
};

// The form of a pass when the card's own times decided (pass_choices.h) instead of the rules of
// PlanPass. The plan ignores a part of the choice that the batch or the workspace does not admit.
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

// The demands of a batch on its pass.
struct PassDemand {
  unsigned queries = 0;
  unsigned hits_max = 0;   // the most hits that a query wants
  unsigned reach_max = 0;  // the most hits plus excluded rows of a query
  bool int8_rows = false;  // whether the int8 scan may be used
  unsigned growth = 0;     // how often the capacity for hits is doubled; see ResidentRows
  // How far a gate is below the sample's score, in units: twice the bound of the strategy.
  double scan_margin = 0;
  double int8_margin = 0;  // estimate of how far the int8 scan's hits reach below the gate
  double gemm_margin = 0;
  const PassChoice* choice = nullptr;  // for the batch's class; borrowed; null: the rules decide
};

// Plans by the demand's choice if there is one that can be planned, else by the rules. The plan is
// for all queries, or for the first plan->slots queries when one pass cannot hold all. Empty when
// no sample gives a gate, because there are too few rows or too large a share of them is wanted.
// Then canonical scores of all rows cost less.
std::optional<PassPlan> PlanPass(const CardTraits& card, const GpuTuning& tuning,
                                 const WorkspaceSize& workspace, const SegmentSize& segment,
                                 const PassDemand& demand);

// As PlanPass, by this variant alone. Empty also when the variant's limits do not admit the batch.
// Ignores a choice of another variant.
std::optional<PassPlan> PlanVariant(const KernelVariant& variant, const CardTraits& card,
                                    const GpuTuning& tuning, const WorkspaceSize& workspace,
                                    const SegmentSize& segment, const PassDemand& demand);

// A scan's plan with one gate, changed to have a second gate, which one row in one_row_in sets. The
// capacity stays. Empty when a second gate is not possible: it needs a tile for each of its groups,
// and more rows than the sample.
std::optional<PassPlan> WithSecondGate(PassPlan plan, unsigned row_count, unsigned one_row_in);

// Expected hits per query for a gate of this rank. Rows are in random order, so `rank` of `groups`
// random groups of `group_rows` rows hold a hit.
double ExpectedHits(double rank, double groups, double group_rows, double row_count);

}  // namespace simile::backend::cuda
