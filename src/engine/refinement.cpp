#include "engine/refinement.h"

#include <utility>

#include "engine/diversify.h"

namespace simile::engine {

Refinement::Refinement(const Question& question, MatrixView vectors, const Snapshot& snapshot,
                       SegmentSearch& search, const Patience& patience)
    : question_(question),
      snapshot_(snapshot),
      search_(search),
      patience_(patience),
      ranking_(question, vectors, snapshot, search, patience_) {
  if (question.grouping) groups_.emplace(question, snapshot);
}

void Refinement::Ask(Round& round) {
  if (!ranking_is_under_way_) {
    if (groups_) {
      ranking_.Begin(groups_->rows_wanted(), groups_->Mask());
    } else {
      ranking_.Begin(question_.diversity ? question_.diversity->candidates : question_.k,
                     question_.mask.get());
    }
    ranking_is_under_way_ = true;
  }
  ranking_.Ask(round);
}

absl::StatusOr<bool> Refinement::Take(const SearchResult& result) {
  const absl::StatusOr<bool> ranked = ranking_.Take(result);
  if (!ranked.ok()) return ranked.status();
  ranking_is_under_way_ = !*ranked;
  const bool goes_on = !*ranked || (groups_ && !groups_->Take(ranking_.hits()));
  if (absl::Status status = goes_on ? patience_.Check() : Conclude(); !status.ok()) return status;
  return !goes_on;
}

absl::Status Refinement::Conclude() {
  if (groups_) {
    if (absl::Status status = groups_->Fill(ranking_); !status.ok()) return status;
    answer_.groups = std::move(*groups_).Groups();
    return absl::OkStatus();
  }
  if (!question_.diversity) {
    answer_.hits = ranking_.hits();
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Hit>> hits = Diversify(
      ranking_.hits(), question_.k, question_.diversity->lambda, snapshot_, search_, comparisons_);
  if (!hits.ok()) return hits.status();
  answer_.hits = *std::move(hits);
  return absl::OkStatus();
}

QueryCost Refinement::cost() const {
  QueryCost cost = ranking_.cost();
  return cost += comparisons_;
}

}  // namespace simile::engine
