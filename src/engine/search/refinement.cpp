#include "engine/search/refinement.h"

#include <utility>

namespace simile::engine {

Refinement::Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                       SegmentSearch& search)
    : query_(query),
      vectors_(vectors),
      snapshot_(snapshot),
      search_(search),
      ranking_(query, vectors, snapshot, search, result_.execution) {
  if (query.grouping) groups_.emplace(query, snapshot);
  BeginRanking();
}

Step Refinement::next() const {
  switch (stage_) {
    case Stage::kRanking:
      return ranking_.next();
    case Stage::kGrouping:
    case Stage::kDiversifying:
    case Stage::kPlacing:
      return Step::kWork;
    case Stage::kDone:
      break;
  }
  return Step::kDone;
}

void Refinement::BeginRanking() {
  if (groups_) {
    ranking_.Begin(groups_->rows_wanted(), groups_->mask());
  } else {
    ranking_.Begin(query_.diversity ? query_.diversity->candidates : query_.k, query_.mask.get());
  }
}

void Refinement::ReadResults(const SearchResult& result) {
  ranking_.ReadResults(result);
  if (ranking_.next() == Step::kDone) FinishRanking();
}

absl::Status Refinement::Work() {
  if (stage_ == Stage::kDiversifying) {
    if (absl::Status status = diversifier_->ChooseSome(search_, result_.execution); !status.ok()) {
      return status;
    }
    if (!diversifier_->done()) return absl::OkStatus();
    result_.hits = QueryHits(diversifier_->TakeHits());
    FinishAnswer();
    return absl::OkStatus();
  }
  if (stage_ == Stage::kPlacing) {
    if (absl::Status status = places_->Work(); !status.ok()) return status;
    if (!places_->done()) return absl::OkStatus();
    result_.places = places_->TakePlaces();
    stage_ = Stage::kDone;
    return absl::OkStatus();
  }
  if (stage_ == Stage::kGrouping) {
    WorkOnGroups();
    return absl::OkStatus();
  }
  if (absl::Status status = ranking_.Work(); !status.ok()) return status;
  if (ranking_.next() == Step::kDone) FinishRanking();
  return absl::OkStatus();
}

void Refinement::FinishRanking() {
  if (groups_) {
    stage_ = Stage::kGrouping;
    return;
  }
  if (query_.diversity && !ranking_.hits().empty()) {
    diversifier_.emplace(ranking_.hits(), query_.k, query_.diversity->lambda, snapshot_);
    stage_ = Stage::kDiversifying;
    return;
  }
  if (query_.order) result_.listed_count = ranking_.listed_count();
  result_.hits = QueryHits(ranking_.TakeHits());
  FinishAnswer();
}

void Refinement::FinishAnswer() {
  stage_ = Stage::kDone;
  if (query_.explained.empty()) return;
  places_.emplace(query_, vectors_, snapshot_, result_.hits.span(), search_, result_.execution);
  stage_ = Stage::kPlacing;
}

// One piece of it.
void Refinement::WorkOnGroups() {
  switch (groups_->Work(ranking_.hits())) {
    case GroupHits::Next::kWork:
      return;
    case GroupHits::Next::kRanking:
      BeginRanking();
      break;
    case GroupHits::Next::kRows: {
      const RowMask* const rows = groups_->mask();
      if (query_.order) {
        ranking_.BeginWithoutSearch(rows->AllowedCount(), rows);
      } else {
        ranking_.BeginOffering(rows, [this](RankKey key) { groups_->Offer(key); });
      }
      break;
    }
    case GroupHits::Next::kDone:
      result_.groups = groups_->TakeGroups();
      return FinishAnswer();
  }
  stage_ = Stage::kRanking;
}

}  // namespace simile::engine
