#include "engine/search/diversify.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

#include "engine/search/piece_of_work.h"

namespace simile::engine {

Diversifier::Diversifier(std::span<const Hit> candidates, std::size_t k, float lambda,
                         const Snapshot& snapshot)
    : snapshot_(snapshot), lambda_(lambda), wanted_(std::min(k, candidates.size())) {
  chosen_.reserve(wanted_);
  candidates_.reserve(candidates.size());
  for (const Hit& hit : candidates) {
    candidates_.push_back({hit, -std::numeric_limits<float>::infinity()});
  }
  by_row_.resize(candidates.size());
  std::iota(by_row_.begin(), by_row_.end(), std::size_t{0});
  std::ranges::sort(by_row_, {}, [&](std::size_t i) { return candidates_[i].hit.row; });
  rows_.reserve(by_row_.size());
  for (const std::size_t i : by_row_) rows_.push_back(candidates_[i].hit.row);
  similarities_.resize(rows_.size());
}

absl::Status Diversifier::ChooseSome(SegmentSearch& search, Execution& execution) {
  assert(!done());
  const std::size_t rounds =
      std::max<std::size_t>(1, RowsOfPiece(snapshot_.dim(), 1) / candidates_.size());
  for (std::size_t round = 0; round < rounds && !done(); ++round) {
    if (!chosen_.empty()) {
      if (absl::Status status = CompareWithNewest(search, execution); !status.ok()) return status;
    }
    Choose();
  }
  return absl::OkStatus();
}

double Diversifier::Relevance(const Candidate& candidate) const {
  return lambda_ * candidate.hit.score - (1.0 - lambda_) * candidate.nearest_chosen;
}

// Until a row is chosen all are as far from those chosen, and the best one is taken.
void Diversifier::Choose() {
  Candidate* best = nullptr;
  for (Candidate& candidate : candidates_) {
    if (candidate.chosen) continue;
    if (best == nullptr || (!chosen_.empty() && Relevance(candidate) > Relevance(*best))) {
      best = &candidate;
    }
  }
  best->chosen = true;
  chosen_.push_back(best->hit);
}

absl::Status Diversifier::CompareWithNewest(SegmentSearch& search, Execution& execution) {
  const MatrixView newest = snapshot_.dataset->vectors.view().Slice(chosen_.back().row, 1);
  const absl::StatusOr<FallbackBackend> fallback =
      search.Score(snapshot_.segments, newest, rows_, similarities_);
  if (!fallback.ok()) return fallback.status();
  execution.AddFallback(*fallback);
  execution.cost.rows_rescored += rows_.size();
  for (std::size_t i = 0; i < by_row_.size(); ++i) {
    float& nearest = candidates_[by_row_[i]].nearest_chosen;
    nearest = std::max(nearest, similarities_[i]);
  }
  return absl::OkStatus();
}

}  // namespace simile::engine
