#include "backend/cpu/row_order_scorer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "backend/cpu/candidates.h"
#include "backend/cpu/rescorer.h"

namespace simile::backend::cpu {
namespace {

// Parts of the queries for each thread: several, so that the others can do most of the share of a
// thread that wakes late. Estimated, like the numbers below.
constexpr std::size_t kPartsPerThread = 4;
// Ranges that a thread claims at a time.
constexpr std::size_t kRangesAtOnce = 4;
// The bits of the row by which one pass of sorting a range distributes pairs.
constexpr unsigned kDigitBits = 8;
// Up to this many pairs of a range are sorted by comparing.
constexpr std::size_t kComparedMax = 48;

}  // namespace

void RowOrderScorer::Reserve(std::size_t candidates_max, unsigned threads) {
  parts_max_ = kPartsPerThread * threads;
  if (next_.size() < parts_max_ * kRangesMax) next_.resize(parts_max_ * kRangesMax);
  if (range_begin_.size() < kRangesMax + 1) range_begin_.resize(kRangesMax + 1);
  pairs_.Reserve(candidates_max * sizeof(Pair));
  spare_.Reserve(candidates_max * sizeof(Pair));
}

void RowOrderScorer::Begin(MatrixView rows, std::span<Query> queries) {
  assert(queries.size() <= kQueriesMax && parts_max_ > 0);
  rows_ = rows;
  queries_ = queries;
  steps_.Reset();
  counted_.Reset();
  listed_.Reset();
  scored_.Reset();
  part_count_ = std::clamp<std::size_t>(queries.size(), 1, parts_max_);
  const std::size_t last_row = rows.row_count() - 1;
  range_shift_ = 0;
  while (last_row >> range_shift_ >= kRangesMax) ++range_shift_;
  range_count_ = (last_row >> range_shift_) + 1;
}

bool RowOrderScorer::Advance(ThreadPool& pool, const certificate::CanonicalKernel& kernel,
                             const Turn& turn) {
  auto count = [&](unsigned) {
    counted_.Claim(turn, part_count_, 1, [this](std::size_t i, std::size_t) { CountPart(i); });
  };
  auto list = [&](unsigned) {
    listed_.Claim(turn, part_count_, 1, [this](std::size_t i, std::size_t) { ListPart(i); });
  };
  auto score = [&](unsigned) {
    scored_.Claim(turn, range_count_, kRangesAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t range = first; range < end; ++range) {
        const std::size_t row = range << range_shift_;
        const MatrixView of_range =
            rows_.Slice(row, std::min(std::size_t{1} << range_shift_, rows_.row_count() - row));
        ScoreRange(kernel, of_range, queries_, SortRange(range));
      }
    });
  };
  const bool counted = steps_.Do(0, [&] {
    pool.Run(count);
    if (!counted_.AreDone(part_count_)) return false;
    SumCounts();
    return true;
  });
  if (!counted) return false;
  if (range_begin_[range_count_] == 0) return true;
  return steps_.Do(1, [&] {
    pool.Run(list);
    return listed_.AreDone(part_count_);
  }) && steps_.Do(2, [&] {
    pool.Run(score);
    return scored_.AreDone(range_count_);
  });
}

void RowOrderScorer::CountPart(std::size_t part) {
  std::uint32_t* counts = next_.data() + part * kRangesMax;
  std::fill_n(counts, range_count_, 0U);
  for (Query& query : FindPart(part)) {
    query.scored = 0;
    for (const Candidate& candidate : query.candidates) {
      if (candidate.known()) continue;
      ++counts[candidate.index >> range_shift_];
      ++query.scored;
    }
  }
}

// Turns counts into places: the pairs of a range are stored together, part after part.
void RowOrderScorer::SumCounts() {
  std::uint32_t sum = 0;
  for (std::size_t range = 0; range < range_count_; ++range) {
    range_begin_[range] = sum;
    for (std::size_t part = 0; part < part_count_; ++part) {
      sum += std::exchange(next_[part * kRangesMax + range], sum);
    }
  }
  range_begin_[range_count_] = sum;
  assert(sum * sizeof(Pair) <= pairs_.bytes());
}

void RowOrderScorer::ListPart(std::size_t part) {
  std::uint32_t* next = next_.data() + part * kRangesMax;
  auto* pairs = pairs_.As<Pair>();
  for (const Query& query : FindPart(part)) {
    const auto number = static_cast<std::size_t>(&query - queries_.data());
    const std::uint32_t row_mask = (1U << range_shift_) - 1;
    for (std::size_t i = 0; i < query.candidates.size(); ++i) {
      const Candidate& candidate = query.candidates[i];
      if (candidate.known()) continue;
      pairs[next[candidate.index >> range_shift_]++] = {candidate.index & row_mask, number, i};
    }
  }
}

std::span<const RowOrderScorer::Pair> RowOrderScorer::SortRange(std::size_t range) {
  const std::size_t begin = range_begin_[range];
  const std::size_t count = range_begin_[range + 1] - begin;
  std::span<Pair> from(pairs_.As<Pair>() + begin, count);
  std::span<Pair> to(spare_.As<Pair>() + begin, count);
  if (count <= kComparedMax) {
    std::ranges::sort(from, {}, &Pair::row);
    return from;
  }
  for (unsigned shift = 0; shift < range_shift_; shift += kDigitBits) {
    SortByDigit<kDigitBits>(std::span<const Pair>(from), to.data(), [shift](const Pair& pair) {
      return pair.row() >> shift & ((1U << kDigitBits) - 1);
    });
    std::swap(from, to);
  }
  return from;
}

void RowOrderScorer::ScoreRange(const certificate::CanonicalKernel& kernel, MatrixView rows,
                                std::span<const Query> queries, std::span<const Pair> pairs) {
  // The end of the pairs that have the same row as pairs[first].
  const auto row_end = [pairs](std::size_t first) {
    std::size_t end = first + 1;
    while (end < pairs.size() && pairs[end].row() == pairs[first].row()) ++end;
    return end;
  };
  std::size_t row_count = 0;
  for (std::size_t i = 0; i < pairs.size(); i = row_end(i)) ++row_count;
  std::size_t ahead = 0;
  std::size_t first = 0;
  ScoreInTurn(
      row_count,
      [&](std::size_t) {
        PrefetchRow(rows, pairs[ahead].row());
        ahead = row_end(ahead);
      },
      [&](std::size_t) {
        const std::size_t end = row_end(first);
        const std::size_t row = pairs[first].row();
        ScoreRow(kernel, {rows.PaddedRow(row), rows.padded_dim()}, queries,
                 pairs.subspan(first, end - first));
        first = end;
      });
}

void RowOrderScorer::ScoreRow(const certificate::CanonicalKernel& kernel,
                              std::span<const float> row, std::span<const Query> queries,
                              std::span<const Pair> pairs) {
  std::array<const float*, Rescorer::kRowsScoredTogether> vectors;
  std::array<float, Rescorer::kRowsScoredTogether> scores;
  for (std::size_t first = 0; first < pairs.size(); first += vectors.size()) {
    const std::span<const Pair> some =
        pairs.subspan(first, std::min(vectors.size(), pairs.size() - first));
    for (std::size_t i = 0; i < some.size(); ++i) vectors[i] = queries[some[i].query()].vector;
    kernel.score_scattered(vectors.data(), some.size(), row.data(), row.size(), scores.data());
    for (std::size_t i = 0; i < some.size(); ++i)
      queries[some[i].query()].candidates[some[i].candidate()].SetScore(scores[i]);
  }
}

}  // namespace simile::backend::cpu
