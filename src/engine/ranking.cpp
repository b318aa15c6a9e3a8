#include "engine/ranking.h"

#include <algorithm>
#include <functional>

#include "certificate/score_bound.h"

namespace simile::engine {
namespace {

// How many rows each probe proposes: some more than are wanted, because equal scores and rows that
// a negative example spoils take places; then many more; then it is time to score all.
constexpr std::uint32_t kSpare = 16;
constexpr std::uint32_t kGrowth = 8;
constexpr std::uint32_t kListMax = 10'000;
// Lists of which the probes together propose more than this share of the rows do not pay.
constexpr std::size_t kShareOfRows = 8;

// What answered where no search of the backend did: every row was scored, or a column told the
// order.
constexpr std::string_view kEveryRow = "every-row";
constexpr std::string_view kOrder = "order";

}  // namespace

Ranking::Ranking(const Question& question, MatrixView vectors, const Snapshot& snapshot,
                 SegmentSearch& search, const Patience& patience)
    : question_(question),
      row_count_(snapshot.row_count()),
      padded_dim_(PaddedDim(snapshot.dim())),
      scorer_(question, vectors, snapshot, search, patience) {
  if (!question.order) MakeProbes(vectors, snapshot);
}

void Ranking::MakeProbes(MatrixView vectors, const Snapshot& snapshot) {
  const float* const first = vectors.data();
  switch (question_.scoring) {
    case Scoring::kSimilarity:
      probes_.assign(first, first + padded_dim_);
      return;
    case Scoring::kBestScore:
      if (question_.positive_count > 0) {
        probes_.assign(first, first + question_.positive_count * padded_dim_);
        return;
      }
      // The rows least like an example are those most like its opposite.
      probes_.resize(vectors.row_count() * padded_dim_);
      std::transform(first, first + probes_.size(), probes_.begin(), std::negate<>());
      return;
    case Scoring::kSumScores:
      probes_.resize(padded_dim_);
      sum_bound_ = certificate::BoundSums(first, padded_dim_, snapshot.dim(), question_.weights,
                                          question_.positive_count, snapshot.dataset->longest_row,
                                          probes_.data());
      if (sum_bound_.scale == 0) probes_.clear();
      return;
  }
}

void Ranking::Begin(std::uint32_t k, const RowMask* mask) {
  k_ = k;
  mask_ = mask;
  hits_.clear();
  if (probes_.empty()) {
    list_k_ = 0;
  } else if (question_.scoring == Scoring::kSimilarity) {
    list_k_ = k;
  } else {
    list_k_ = std::max(k, std::min(k + k / 4 + kSpare, kListMax));
  }
}

void Ranking::Ask(Round& round) {
  first_place_ = round.size();
  if (list_k_ == 0) return;
  QuerySpec spec{.k = list_k_, .mask = mask_, .excluded_rows = question_.excluded_rows};
  if (question_.scoring == Scoring::kSimilarity) spec.score_threshold = question_.score_threshold;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    round.Add(probes_.data() + probe * padded_dim_, spec);
  }
}

absl::StatusOr<bool> Ranking::Take(const SearchResult& result) {
  if (rounds_ > 0) ++cost_.rounds;
  ++rounds_;
  if (list_k_ == 0) {
    absl::StatusOr<std::vector<Hit>> hits = BestAtOnce(mask_, k_);
    if (!hits.ok()) return hits.status();
    hits_ = *std::move(hits);
    return true;
  }
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    cost_ += result.Cost(first_place_ + probe);
    engines_.Add(result.Engine(first_place_ + probe));
  }
  if (question_.scoring == Scoring::kSimilarity) {
    const std::span<const Hit> hits = result.Hits(first_place_);
    hits_.assign(hits.begin(), hits.end());
    return true;
  }
  CollectCandidates(result);
  absl::StatusOr<std::vector<Hit>> hits = scorer_.BestOf(candidates_, k_);
  if (!hits.ok()) return hits.status();
  hits_ = *std::move(hits);
  if (Certain(result)) return true;
  AskForMore();
  return false;
}

absl::StatusOr<std::vector<Hit>> Ranking::BestAtOnce(const RowMask* mask, std::size_t k) {
  if (!question_.order) {
    engines_.Add(kEveryRow);
    return scorer_.BestOfAll(mask, k);
  }
  engines_.Add(kOrder);
  std::vector<Hit> hits;
  for (const Row row : question_.order->First(k, mask, question_.excluded_rows)) {
    hits.push_back({row, 0});
  }
  return hits;
}

void Ranking::CollectCandidates(const SearchResult& result) {
  candidates_.clear();
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    for (const Hit& hit : result.Hits(first_place_ + probe)) candidates_.push_back(hit.row);
  }
  std::ranges::sort(candidates_);
  candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
}

bool Ranking::Certain(const SearchResult& result) const {
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    // A list that is not full holds every row that passes.
    if (result.Hits(first_place_ + probe).size() < list_k_) return true;
  }
  // Strictly above: among equal scores the row number decides, which a bound knows nothing of.
  const float others = CeilingOfOthers(result);
  if (others < question_.score_threshold) return true;
  return hits_.size() == k_ && hits_.back().score > others;
}

// No row outside the lists scores better with a probe than the last of that probe's list.
float Ranking::CeilingOfOthers(const SearchResult& result) const {
  std::vector<float> last;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    last.push_back(result.Hits(first_place_ + probe).back().score);
  }
  if (question_.scoring == Scoring::kSumScores) {
    return certificate::FloatAbove(sum_bound_.scale * last.front() + sum_bound_.slack);
  }
  if (question_.positive_count > 0) {
    return certificate::BestScoreCeiling(
        last, std::span(question_.weights).first(question_.positive_count));
  }
  for (float& score : last) score = -score;
  return certificate::BestScoreCeilingOfFloors(last, question_.weights);
}

void Ranking::AskForMore() {
  const std::uint64_t wanted = std::uint64_t{list_k_} * kGrowth;
  const bool pays = wanted <= kListMax && wanted * probe_count() <= row_count_ / kShareOfRows;
  list_k_ = pays ? static_cast<std::uint32_t>(wanted) : 0;
}

QueryCost Ranking::cost() const {
  QueryCost cost = cost_;
  return cost += scorer_.cost();
}

}  // namespace simile::engine
