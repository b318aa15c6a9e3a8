#include "engine/search/row_scorer.h"

#include <algorithm>

#include "certificate/combined_score.h"
#include "certificate/top_k.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

// Scores held at a time, all vectors together.
constexpr std::size_t kScoresAtOnce = 1U << 20;

// The rows that pass a mask (null: all) and are not excluded, ascending, some at a time.
class PassingRows {
 public:
  //   excluded  ascending
  PassingRows(std::size_t row_count, const RowMask* mask, std::span<const Row> excluded)
      : row_count_(row_count), mask_(mask), excluded_(excluded) {}

  // Replaces `rows` by the next `count` of them; by fewer only when no more follow.
  void Read(std::size_t count, std::vector<Row>& rows) {
    rows.clear();
    while (next_ < row_count_ && rows.size() < count) {
      // Never more rows than still fit.
      const std::size_t end = std::min(row_count_, next_ + (count - rows.size()));
      const auto add = [&](Row row) {
        while (!excluded_.empty() && excluded_.front() < row) excluded_ = excluded_.subspan(1);
        if (excluded_.empty() || excluded_.front() != row) rows.push_back(row);
      };
      if (mask_ != nullptr) {
        mask_->ForEachAllowed(static_cast<Row>(next_), static_cast<Row>(end), add);
      } else {
        for (std::size_t row = next_; row < end; ++row) add(static_cast<Row>(row));
      }
      next_ = end;
    }
  }

 private:
  const std::size_t row_count_;
  const RowMask* const mask_;
  std::span<const Row> excluded_;  // those not yet passed
  std::size_t next_ = 0;
};

}  // namespace

// The best k of the rows offered, and their buffer.
struct RowScorer::Best {
  Best(std::size_t k, std::size_t offers_max, float threshold)
      : buffer(certificate::TopK::CapacityFor(k, offers_max)), keys(buffer, k, threshold) {}

  std::vector<Hit> Hits() {
    std::vector<Hit> hits;
    for (const RankKey key : keys.Sorted()) hits.push_back({key.row(), key.score()});
    return hits;
  }

  std::vector<RankKey> buffer;
  certificate::TopK keys;
};

absl::StatusOr<std::vector<Hit>> RowScorer::BestOf(std::span<const Row> rows, std::size_t k) {
  Best best(k, rows.size(), query_.score_threshold);
  while (!rows.empty()) {
    const std::span<const Row> part = rows.first(std::min(RowsAtOnce(), rows.size()));
    absl::Status status = Offer(part, execution_.cost.rows_rescored, best);
    if (!status.ok()) return status;
    rows = rows.subspan(part.size());
  }
  return best.Hits();
}

absl::StatusOr<std::vector<Hit>> RowScorer::BestOfAll(const RowMask* mask, std::size_t k) {
  Best best(k, snapshot_.row_count(), query_.score_threshold);
  PassingRows passing(snapshot_.row_count(), mask, query_.excluded_rows);
  std::vector<Row> rows;
  rows.reserve(RowsAtOnce());
  for (;;) {
    passing.Read(RowsAtOnce(), rows);
    if (rows.empty()) return best.Hits();
    absl::Status status = Offer(rows, execution_.cost.rows_scanned, best);
    if (!status.ok()) return status;
  }
}

std::size_t RowScorer::RowsAtOnce() const {
  return std::max<std::size_t>(1, kScoresAtOnce / vectors_.row_count());
}

absl::Status RowScorer::Offer(std::span<const Row> rows, std::uint64_t& counter, Best& best) {
  if (absl::Status status = context_.Check(); !status.ok()) return status;
  const std::size_t vector_count = vectors_.row_count();
  scores_.resize(vector_count * rows.size());
  similarities_.resize(vector_count);
  const absl::StatusOr<FallbackBackend> fallback =
      search_.Score(snapshot_.segments, vectors_, rows, scores_);
  if (!fallback.ok()) return fallback.status();
  execution_.AddFallback(*fallback);
  counter += rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t vector = 0; vector < vector_count; ++vector) {
      similarities_[vector] = scores_[vector * rows.size() + i];
    }
    best.keys.Offer(RankKey(Combine(similarities_), rows[i]));
  }
  return absl::OkStatus();
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
