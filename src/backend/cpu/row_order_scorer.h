#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/candidates.h"
#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"
#include "certificate/canonical_score.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// Forms the canonical scores of the candidates of many queries in the order of their rows: each row
// is read once, ascending, and scored with every query that has it as a candidate. Threads divide
// the rows. docs/design/cpu-engine.md says when this is faster than query by query. Keeps its
// buffers for the next call; used by one thread at a time.
class RowOrderScorer {
 public:
  // A query's candidates. Candidates without a known score are scored: lower and upper become the
  // score.
  struct Query {
    const float* vector = nullptr;  // [padded_dim]
    std::span<Candidate> candidates;
    std::size_t scored = 0;  // written: the number of candidates scored
  };
  static constexpr std::size_t kQueriesMax = 1'024;

  // Allocates for this many candidates of all queries of a call. Throws std::bad_alloc.
  void Reserve(std::size_t candidates_max, unsigned threads);

  // Begins to score; borrows the queries.
  //   rows  of the segment, which the candidates' indices count
  // REQUIRES: reserved for the candidates of these queries; at most kQueriesMax queries.
  // Cost: one read of the rows to score, and a score for each candidate. 8 bytes a candidate are
  // sorted by row: in one step into ranges of rows, then in one step for each eight bits of a row
  // in its range.
  void Begin(MatrixView rows, std::span<Query> queries);
  // Continues until the turn is over. Returns whether all candidates are scored. Does not throw.
  bool Advance(ThreadPool& pool, const certificate::CanonicalKernel& kernel, const Turn& turn);
  // The bytes of the buffers that grow with candidates.
  std::uint64_t bytes() const { return pairs_.bytes() + spare_.bytes(); }

 private:
  static constexpr unsigned kRowBits = 22;
  static constexpr unsigned kQueryBits = 10;
  // One score to form, among those of a range of rows.
  class Pair {
   public:
    Pair(std::size_t row, std::size_t query, std::size_t candidate)
        : bits_(row | query << kRowBits | candidate << (kRowBits + kQueryBits)) {}
    // The row's index in its range.
    std::size_t row() const { return bits_ & ((std::size_t{1} << kRowBits) - 1); }
    std::size_t query() const { return bits_ >> kRowBits & (kQueriesMax - 1); }
    // The index in the query's candidates.
    std::size_t candidate() const { return bits_ >> (kRowBits + kQueryBits); }

   private:
    std::uint64_t bits_;
  };
  static_assert(kQueriesMax == std::size_t{1} << kQueryBits);

  // Rows are divided into at most this many ranges of equal length. Pairs are first distributed to
  // the ranges, then sorted within each range by the thread that scores it. 2^32 rows make ranges
  // of 2^22.
  static constexpr std::size_t kRangesMax = 1'024;
  static_assert(kRangesMax << kRowBits == std::uint64_t{1} << 32);

  void CountPart(std::size_t part);
  void SumCounts();
  void ListPart(std::size_t part);
  // Sorts the pairs of a range by row. Returns the sorted pairs.
  std::span<const Pair> SortRange(std::size_t range);
  //   rows  of the range
  static void ScoreRange(const certificate::CanonicalKernel& kernel, MatrixView rows,
                         std::span<const Query> queries, std::span<const Pair> pairs);
  //   pairs  of one row
  static void ScoreRow(const certificate::CanonicalKernel& kernel, std::span<const float> row,
                       std::span<const Query> queries, std::span<const Pair> pairs);

  // The queries of a part. Threads claim parts to count and list pairs.
  std::span<Query> FindPart(std::size_t part) const {
    const std::size_t first = queries_.size() * part / part_count_;
    return queries_.subspan(first, queries_.size() * (part + 1) / part_count_ - first);
  }

  MatrixView rows_;
  std::span<Query> queries_;
  StepsDone steps_;
  PartsOfJob counted_;
  PartsOfJob listed_;
  PartsOfJob scored_;
  unsigned range_shift_ = 0;  // index >> this is the range of a row
  std::size_t range_count_ = 0;
  std::size_t parts_max_ = 0;
  std::size_t part_count_ = 0;
  std::vector<std::uint32_t>
      next_;  // [part][range]  number of pairs, then the place of the next pair
  std::vector<std::uint32_t> range_begin_;  // [range + 1]
  base::PageBuffer pairs_;                  // Pair, by range
  base::PageBuffer spare_;                  // Pair, a second array to sort with
};

}  // namespace simile::backend::cpu
