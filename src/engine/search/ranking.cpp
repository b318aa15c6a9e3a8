#include "engine/search/ranking.h"

#include <algorithm>
#include <functional>

#include "certificate/score_bound.h"
#include "simile/limits.h"

namespace simile::engine {
namespace {

// Rows that each probe proposes beyond k + k / 4, because equal scores and rows that a negative
// example makes worse take up places in its list.
constexpr std::uint32_t kSpare = 16;
// How many times longer the lists of the next round are.
constexpr std::uint32_t kGrowth = 8;
// Lists that together propose more than 1 / kShareOfRows of the rows cost more than scoring all.
constexpr std::size_t kShareOfRows = 8;

// Engine names where the backend did not search: every row was scored, or a column gave the order.
constexpr std::string_view kEveryRow = "every-row";
constexpr std::string_view kOrder = "order";

}  // namespace

Ranking::Ranking(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                 SegmentSearch& search, const CallContext& context, Execution& execution)
    : query_(query),
      row_count_(snapshot.row_count()),
      padded_dim_(PaddedDim(snapshot.dim())),
      execution_(execution),
      scorer_(query, vectors, snapshot, search, context, execution) {
  if (!query.order) MakeProbes(vectors, snapshot);
}

void Ranking::MakeProbes(MatrixView vectors, const Snapshot& snapshot) {
  const float* const first = vectors.data();
  switch (query_.scoring) {
    case Scoring::kSimilarity:
      probes_.assign(first, first + padded_dim_);
      return;
    case Scoring::kBestScore:
      if (query_.positive_count > 0) {
        probes_.assign(first, first + query_.positive_count * padded_dim_);
        return;
      }
      // The rows least like an example are those most like its opposite.
      probes_.resize(vectors.row_count() * padded_dim_);
      std::transform(first, first + probes_.size(), probes_.begin(), std::negate<>());
      return;
    case Scoring::kSumScores:
      probes_.resize(padded_dim_);
      sum_bound_ = certificate::BoundSums(first, padded_dim_, snapshot.dim(), query_.weights,
                                          query_.positive_count, snapshot.dataset->longest_row,
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
  } else if (query_.scoring == Scoring::kSimilarity) {
    list_k_ = k;
  } else {
    list_k_ = std::max(k, std::min(k + k / 4 + kSpare, kHitsMax));
  }
}

void Ranking::AddSearches(SearchBatchBuilder& builder) {
  first_search_ = builder.size();
  if (list_k_ == 0) return;
  QuerySpec spec{.k = list_k_, .mask = mask_, .excluded_rows = query_.excluded_rows};
  if (query_.scoring == Scoring::kSimilarity) spec.score_threshold = query_.score_threshold;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    builder.Add(probes_.data() + probe * padded_dim_, spec);
  }
}

absl::StatusOr<bool> Ranking::ReadResults(const SearchResult& result) {
  if (rounds_ > 0) ++execution_.cost.rounds;
  ++rounds_;
  if (list_k_ == 0) {
    absl::StatusOr<std::vector<Hit>> hits = BestAtOnce(mask_, k_);
    if (!hits.ok()) return hits.status();
    hits_ = *std::move(hits);
    return true;
  }
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    execution_.AddSearch(result, first_search_ + probe);
  }
  if (query_.scoring == Scoring::kSimilarity) {
    const std::span<const Hit> hits = result.Hits(first_search_);
    hits_.assign(hits.begin(), hits.end());
    return true;
  }
  CollectCandidates(result);
  absl::StatusOr<std::vector<Hit>> hits = scorer_.BestOf(candidates_, k_);
  if (!hits.ok()) return hits.status();
  hits_ = *std::move(hits);
  if (IsProven(result)) return true;
  LengthenLists();
  return false;
}

absl::StatusOr<std::vector<Hit>> Ranking::BestAtOnce(const RowMask* mask, std::size_t k) {
  if (!query_.order) {
    execution_.engines.Add(kEveryRow);
    return scorer_.BestOfAll(mask, k);
  }
  execution_.engines.Add(kOrder);
  std::vector<Hit> hits;
  for (const Row row : query_.order->First(k, mask, query_.excluded_rows)) {
    hits.push_back({row, 0});
  }
  return hits;
}

void Ranking::CollectCandidates(const SearchResult& result) {
  candidates_.clear();
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    for (const Hit& hit : result.Hits(first_search_ + probe)) candidates_.push_back(hit.row);
  }
  std::ranges::sort(candidates_);
  candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
}

bool Ranking::IsProven(const SearchResult& result) const {
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    // A list that is not full holds every row that passes.
    if (result.Hits(first_search_ + probe).size() < list_k_) return true;
  }
  // Strictly above: row numbers break ties, and the bound says nothing about those.
  const float others = CeilingOfOthers(result);
  if (others < query_.score_threshold) return true;
  return hits_.size() == k_ && hits_.back().score > others;
}

// No row outside the lists scores better with a probe than the last of that probe's list.
float Ranking::CeilingOfOthers(const SearchResult& result) const {
  std::vector<float> last;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    last.push_back(result.Hits(first_search_ + probe).back().score);
  }
  if (query_.scoring == Scoring::kSumScores) {
    return certificate::FloatAbove(sum_bound_.scale * last.front() + sum_bound_.slack);
  }
  if (query_.positive_count > 0) {
    return certificate::BestScoreCeiling(last,
                                         std::span(query_.weights).first(query_.positive_count));
  }
  for (float& score : last) score = -score;
  return certificate::BestScoreCeilingOfFloors(last, query_.weights);
}

void Ranking::LengthenLists() {
  const std::uint64_t wanted = std::uint64_t{list_k_} * kGrowth;
  const bool pays = wanted <= kHitsMax && wanted * probe_count() <= row_count_ / kShareOfRows;
  list_k_ = pays ? static_cast<std::uint32_t>(wanted) : 0;
}

}  // namespace simile::engine
