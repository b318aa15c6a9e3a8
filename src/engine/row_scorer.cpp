#include "engine/row_scorer.h"

#include <algorithm>

#include "certificate/combined_score.h"
#include "certificate/top_k.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

// Scores held at a time, all vectors together.
constexpr std::size_t kScoresAtOnce = 1U << 20;

// Calls visit(row) for every row of [0, row_count) that passes the mask (null: all) and is not
// excluded, ascending.
//   excluded  ascending
template <class Visit>
void ForEachPassing(std::size_t row_count, const RowMask* mask, std::span<const Row> excluded,
                    Visit visit) {
  auto next = excluded.begin();
  const auto look = [&](Row row) {
    while (next != excluded.end() && *next < row) ++next;
    if (next == excluded.end() || *next != row) visit(row);
  };
  const auto end = static_cast<Row>(row_count);
  if (mask != nullptr) {
    mask->ForEachAllowed(0, end, look);
  } else {
    for (Row row = 0; row < end; ++row) look(row);
  }
}

}  // namespace

// The best k of what is offered, and their room.
struct RowScorer::Best {
  Best(std::size_t k, std::size_t offers_max, float threshold)
      : room(certificate::TopK::RoomFor(k, offers_max)), keys(room, k, threshold) {}

  std::vector<Hit> Hits() {
    std::vector<Hit> hits;
    for (const RankKey key : keys.Sorted()) hits.push_back({key.row(), key.score()});
    return hits;
  }

  std::vector<RankKey> room;
  certificate::TopK keys;
};

absl::StatusOr<std::vector<Hit>> RowScorer::BestOf(std::span<const Row> rows, std::size_t k) {
  Best best(k, rows.size(), question_.score_threshold);
  cost_.rows_rescored += rows.size();
  const std::size_t piece = RowsAtOnce();
  for (std::size_t first = 0; first < rows.size(); first += piece) {
    const std::size_t count = std::min(piece, rows.size() - first);
    absl::Status status = Offer(rows.subspan(first, count), best);
    if (!status.ok()) return status;
  }
  return best.Hits();
}

absl::StatusOr<std::vector<Hit>> RowScorer::BestOfAll(const RowMask* mask, std::size_t k) {
  Best best(k, snapshot_.row_count(), question_.score_threshold);
  const std::size_t piece = RowsAtOnce();
  std::vector<Row> rows;
  rows.reserve(piece);
  absl::Status status;
  const auto offer = [&] {
    cost_.rows_scanned += rows.size();
    if (status.ok()) status = Offer(rows, best);
    rows.clear();
  };
  ForEachPassing(snapshot_.row_count(), mask, question_.excluded_rows, [&](Row row) {
    rows.push_back(row);
    if (rows.size() == piece) offer();
  });
  offer();
  if (!status.ok()) return status;
  return best.Hits();
}

std::size_t RowScorer::RowsAtOnce() const {
  return std::max<std::size_t>(1, kScoresAtOnce / vectors_.row_count());
}

absl::Status RowScorer::Offer(std::span<const Row> rows, Best& best) {
  if (rows.empty()) return absl::OkStatus();
  if (absl::Status status = patience_.Check(); !status.ok()) return status;
  const std::size_t vector_count = vectors_.row_count();
  scores_.resize(vector_count * rows.size());
  similarities_.resize(vector_count);
  absl::Status status = search_.Score(snapshot_.segments, vectors_, rows, scores_);
  if (!status.ok()) return status;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t vector = 0; vector < vector_count; ++vector) {
      similarities_[vector] = scores_[vector * rows.size() + i];
    }
    best.keys.Offer(RankKey(Combine(similarities_), rows[i]));
  }
  return absl::OkStatus();
}

float RowScorer::Combine(std::span<const float> similarities) const {
  switch (question_.scoring) {
    case Scoring::kBestScore:
      return certificate::BestScore(similarities, question_.weights, question_.positive_count);
    case Scoring::kSumScores:
      return certificate::SumScores(similarities, question_.weights, question_.positive_count);
    case Scoring::kSimilarity:
      break;
  }
  return similarities.front();
}

}  // namespace simile::engine
