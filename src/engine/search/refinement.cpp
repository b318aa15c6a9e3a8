#include "engine/search/refinement.h"

#include <utility>

#include "engine/search/diversify.h"

namespace simile::engine {

Refinement::Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                       SegmentSearch& search, const CallContext& context)
    : query_(query),
      snapshot_(snapshot),
      search_(search),
      context_(context),
      ranking_(query, vectors, snapshot, search, context_, result_.execution) {
  if (query.grouping) groups_.emplace(query, snapshot);
}

void Refinement::AddSearches(SearchBatchBuilder& builder) {
  if (!ranking_has_begun_) {
    if (groups_) {
      ranking_.Begin(groups_->rows_wanted(), groups_->Mask());
    } else {
      ranking_.Begin(query_.diversity ? query_.diversity->candidates : query_.k, query_.mask.get());
    }
    ranking_has_begun_ = true;
  }
  ranking_.AddSearches(builder);
}

absl::StatusOr<bool> Refinement::ReadResults(const SearchResult& result) {
  const absl::StatusOr<bool> ranked = ranking_.ReadResults(result);
  if (!ranked.ok()) return ranked.status();
  ranking_has_begun_ = !*ranked;
  const bool complete = *ranked && (!groups_ || groups_->ReadRanking(ranking_.hits()));
  absl::Status status = complete ? CompleteResult() : context_.Check();
  if (!status.ok()) return status;
  return complete;
}

absl::Status Refinement::CompleteResult() {
  if (groups_) {
    if (absl::Status status = groups_->CompleteGroups(ranking_); !status.ok()) return status;
    result_.groups = std::move(*groups_).Groups();
    return absl::OkStatus();
  }
  if (!query_.diversity) {
    result_.hits = ranking_.hits();
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Hit>> hits = Diversify(
      ranking_.hits(), query_.k, query_.diversity->lambda, snapshot_, search_, result_.execution);
  if (!hits.ok()) return hits.status();
  result_.hits = *std::move(hits);
  return absl::OkStatus();
}

}  // namespace simile::engine
