#include "engine/search/ranking.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "certificate/score_bound.h"
#include "simile/limits.h"

namespace simile::engine {
namespace {

// Rows that each probe proposes beyond k + k / 4, because equal scores and rows that a negative
// example makes worse take up places in its list.
constexpr std::uint32_t kSpare = 16;
// How many times longer the lists of the next round are.
constexpr std::uint32_t kGrowth = 8;
// Lists that together propose more than 1 / kShareOfRows of the rows cost more than scoring all
// rows.
constexpr std::size_t kShareOfRows = 8;

// The engine in a receipt when a column gave the order.
constexpr std::string_view kOrder = "order";

}  // namespace

Ranking::Ranking(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                 SegmentSearch& search, Execution& execution)
    : query_(query),
      row_count_(snapshot.row_count()),
      padded_dim_(PaddedDim(snapshot.dim())),
      execution_(execution),
      scorer_(query, vectors, snapshot, search, execution) {
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
      // The rows least like an example are the rows most like its negated vector.
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

std::uint32_t Ranking::FirstListLength(Scoring scoring, std::uint32_t k) {
  if (scoring == Scoring::kSimilarity) return k;
  return std::max(k, std::min(k + k / 4 + kSpare, kHitsMax));
}

void Ranking::Begin(std::uint32_t k, const RowMask* mask) {
  k_ = k;
  mask_ = mask;
  list_k_ = probes_.empty() ? 0 : FirstListLength(query_.scoring, k);
  BeginRound();
}

void Ranking::BeginRound() {
  if (rounds_ > 0) ++execution_.cost.rounds;
  ++rounds_;
  next_ = Step::kSearch;
  if (list_k_ == 0) BeginWithoutSearch(k_, mask_);
}

void Ranking::BeginWithoutSearch(std::size_t k, const RowMask* mask) {
  k_ = k;
  mask_ = mask;
  list_k_ = 0;
  hits_.clear();
  next_ = Step::kWork;
  execution_.engines.Add(query_.order ? kOrder : kEveryRow);
  if (query_.order) {
    ordered_.emplace(*query_.order, k, mask, query_.excluded());
  } else {
    scorer_.BeginAll(mask, k);
  }
}

void Ranking::BeginOffering(const RowMask* mask, RowScorer::Offer offer) {
  BeginWithoutSearch(1, mask);
  scorer_.OfferTo(std::move(offer));
}

void Ranking::AddSearches(SearchBatchBuilder& builder) {
  first_search_ = builder.size();
  QuerySpec spec{.k = list_k_, .mask = mask_, .excluded_rows = query_.excluded()};
  if (query_.scoring == Scoring::kSimilarity) spec.score_threshold = query_.score_threshold;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    builder.Add(probes_.data() + probe * padded_dim_, spec);
  }
}

void Ranking::ReadResults(const SearchResult& result) {
  bool exhausted = false;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    execution_.AddSearch(result, first_search_ + probe);
    // A list that is not full holds every row that passes.
    exhausted = exhausted || result.Hits(first_search_ + probe).size() < list_k_;
  }
  if (query_.scoring == Scoring::kSimilarity) {
    const std::span<const Hit> hits = result.Hits(first_search_);
    hits_.assign(hits.begin(), hits.end());
    next_ = Step::kDone;
    return;
  }
  ceiling_of_others_.reset();
  if (!exhausted) ceiling_of_others_ = CeilingOfOthers(result);
  scorer_.Begin(CollectCandidates(result), k_);
  next_ = Step::kWork;
}

absl::Status Ranking::Work() {
  if (query_.order) {
    ordered_->ReadPiece();
    if (!ordered_->done()) return absl::OkStatus();
    for (const Row row : ordered_->rows()) hits_.push_back({row, 0});
    listed_count_ = ordered_->listed_count();
    ordered_.reset();
    next_ = Step::kDone;
    return absl::OkStatus();
  }
  if (!scorer_.done()) {
    if (absl::Status status = scorer_.ScorePiece(); !status.ok()) return status;
  }
  if (!scorer_.done()) return absl::OkStatus();
  hits_ = scorer_.TakeHits();
  next_ = Step::kDone;
  if (list_k_ == 0 || IsProven()) return absl::OkStatus();
  LengthenLists();
  BeginRound();
  return absl::OkStatus();
}

std::vector<Row> Ranking::CollectCandidates(const SearchResult& result) const {
  std::vector<Row> candidates;
  for (std::size_t probe = 0; probe < probe_count(); ++probe) {
    for (const Hit& hit : result.Hits(first_search_ + probe)) candidates.push_back(hit.row);
  }
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

bool Ranking::IsProven() const {
  if (!ceiling_of_others_) return true;
  // The k-th score must be strictly above the bound, because row numbers break ties.
  if (*ceiling_of_others_ < query_.score_threshold) return true;
  return hits_.size() == k_ && hits_.back().score > *ceiling_of_others_;
}

// Bounds the score of rows outside the lists: such a row scores at most as well with a probe as the
// last row of the probe's list.
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
