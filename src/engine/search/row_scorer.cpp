#include "engine/search/row_scorer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "certificate/combined_score.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

// An offered row costs more than its score, because its keywords are read (group_hits.h).
constexpr std::size_t kOfferedOfPiece = 2'048;

}  // namespace

void RowScorer::Begin(std::vector<Row> rows, std::size_t k) {
  all_ = false;
  given_ = std::move(rows);
  end_row_ = given_.size();
  Restart(k, given_.size());
}

void RowScorer::BeginAll(const RowMask* mask, std::size_t k) {
  all_ = true;
  mask_ = mask;
  excluded_ = query_.excluded();
  end_row_ = snapshot_.row_count();
  Restart(k, end_row_);
}

void RowScorer::Restart(std::size_t k, std::size_t offers_max) {
  next_row_ = 0;
  best_buffer_.resize(certificate::TopK::CapacityFor(k, offers_max));
  best_ = certificate::TopK(best_buffer_, k, query_.score_threshold);
  offer_ = nullptr;
}

absl::Status RowScorer::ScorePiece() {
  assert(!done());
  std::size_t count = RowsOfPiece(snapshot_.dim(), vectors_.row_count());
  if (offer_) count = std::min(count, kOfferedOfPiece);
  std::span<const Row> rows;
  if (all_) {
    ReadPassingRows(count);
    rows = piece_;
  } else {
    rows = std::span(given_).subspan(next_row_, std::min(count, end_row_ - next_row_));
    next_row_ += rows.size();
  }
  const std::size_t vector_count = vectors_.row_count();
  scores_.resize(vector_count * rows.size());
  similarities_.resize(vector_count);
  const absl::StatusOr<FallbackBackend> fallback =
      search_.Score(snapshot_.segments, vectors_, rows, scores_);
  if (!fallback.ok()) return fallback.status();
  execution_.AddFallback(*fallback);
  (all_ ? execution_.cost.rows_scanned : execution_.cost.rows_rescored) += rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t vector = 0; vector < vector_count; ++vector) {
      similarities_[vector] = scores_[vector * rows.size() + i];
    }
    const RankKey key(Combine(similarities_), rows[i]);
    offer_ ? offer_(key) : best_.Offer(key);
  }
  return absl::OkStatus();
}

std::vector<Hit> RowScorer::TakeHits() {
  assert(done());
  std::vector<Hit> hits;
  for (const RankKey key : best_.Sorted()) hits.push_back({key.row(), key.score()});
  best_buffer_ = std::vector<RankKey>();
  given_ = std::vector<Row>();
  return hits;
}

// Reads the next `count` rows that pass the mask and are not excluded; fewer only at the end.
void RowScorer::ReadPassingRows(std::size_t count) {
  piece_.clear();
  const auto add = [this](Row row) {
    while (!excluded_.empty() && excluded_.front() < row) excluded_ = excluded_.subspan(1);
    if (excluded_.empty() || excluded_.front() != row) piece_.push_back(row);
  };
  while (next_row_ < end_row_ && piece_.size() < count) {
    // Reads no more rows than still fit into the piece.
    const std::size_t end = std::min(end_row_, next_row_ + (count - piece_.size()));
    if (mask_ != nullptr) {
      mask_->ForEachAllowed(static_cast<Row>(next_row_), static_cast<Row>(end), add);
    } else {
      for (std::size_t row = next_row_; row < end; ++row) add(static_cast<Row>(row));
    }
    next_row_ = end;
  }
}

float RowScorer::Combine(std::span<const float> similarities) const {
  switch (query_.scoring) {
    case Scoring::kBestScore:
      return certificate::BestScore(similarities, query_.weights, query_.positive_count);
    case Scoring::kSumScores:
      return certificate::SumScores(similarities, query_.weights, query_.positive_count);
    case Scoring::kSimilarity:
      break;
  }
  return similarities.front();
}

}  // namespace simile::engine
