#include "backend/cuda/too_high_gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/pass_plan.h"
#include "backend/cuda/resident_rows.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::tests {
namespace {

// The rank of the gate with which the query begins.
unsigned FindRank(const TooHighGate& gate, const backend::GpuOptions& options) {
  backend::cuda::CardTraits card;
  card.multiprocessors = static_cast<unsigned>(CardOf(0).multiprocessors);
  card.shared_bytes_max = CardOf(0).shared_bytes_max;
  card.l2_bytes = emulated_cuda::Options{}.l2_bytes;
  card.capability = card.code_capability = CardOf(0).capability;
  backend::cuda::PassDemand demand;
  demand.queries = 1;
  demand.hits_max = demand.reach_max = gate.wanted;
  demand.int8_rows = options.int8_rows;
  const auto plan = backend::cuda::PlanPass(card, options.tuning, options.workspace,
                                            {gate.row_count, kTooHighGateDim}, demand);
  EXPECT_TRUE(plan.has_value());
  return plan ? plan->FindRanks(gate.wanted).first : 0;
}

}  // namespace

std::shared_ptr<PaddedRows> MakeRows(const TooHighGate& gate, const backend::GpuOptions& options) {
  constexpr unsigned kGroup = 32;
  const unsigned rank = FindRank(gate, options);
  EXPECT_LT(rank, gate.wanted) << "else the gate cannot be too high";
  SeededRandom random(8);
  const std::vector<unsigned> row_of = backend::cuda::ShuffledRows(gate.row_count);
  auto rows = std::make_shared<PaddedRows>(gate.row_count, kTooHighGateDim);
  for (unsigned position = 0; position < gate.row_count; ++position) {
    const unsigned group = position / kGroup;
    float score = 0.2F;
    if (position % kGroup == 0 && group < rank) score = 0.9F;
    if (position % kGroup == 0 && group >= rank && group < rank + gate.near_count) {
      score = 0.9F - gate.near_below;
    }
    SetScore((*rows)[row_of[position]], score, random);
  }
  return rows;
}

void SetScore(std::span<float> row, float score, SeededRandom& random) {
  for (float& value : row) value = random.Signed();
  row[0] = 0;
  ScaleTo(row, std::sqrt(1 - static_cast<double>(score) * score));
  row[0] = score;
}

}  // namespace simile::tests
