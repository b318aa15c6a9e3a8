#include "engine/refinement.h"

#include <utility>

#include "engine/diversify.h"

namespace simile::engine {

Refinement::Refinement(const Question& question, MatrixView vectors, const Snapshot& snapshot,
                       SegmentSearch& search)
    : question_(question),
      snapshot_(snapshot),
      search_(search),
      ranking_(question, vectors, snapshot, search) {
  const RowMask* const mask = question.mask.get();
  if (question.grouping) {
    groups_.emplace(question, snapshot);
    ranking_.Begin(groups_->rows_wanted(), groups_->mask());
  } else {
    ranking_.Begin(question.diversity ? question.diversity->candidates : question.k, mask);
  }
}

absl::StatusOr<bool> Refinement::Take(const SearchResult& result) {
  const absl::StatusOr<bool> ranked = ranking_.Take(result);
  if (!ranked.ok() || !*ranked) return ranked;
  if (groups_ && !groups_->Take(ranking_.hits())) {
    ranking_.Begin(groups_->rows_wanted(), groups_->mask());
    return false;
  }
  if (absl::Status status = Conclude(); !status.ok()) return status;
  return true;
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
  absl::StatusOr<std::vector<Hit>> hits =
      Diversify(ranking_.hits(), question_.k, question_.diversity->lambda, snapshot_, search_);
  if (!hits.ok()) return hits.status();
  answer_.hits = *std::move(hits);
  return absl::OkStatus();
}

}  // namespace simile::engine
