#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "certificate/canonical_score.h"
#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Forms canonical scores of single rows of a segment with one query.
class Rescorer {
 public:
  static constexpr std::size_t kRowsScoredTogether = 4;

  //   count  raised by every score that is formed
  Rescorer(const certificate::CanonicalKernel& kernel, const SegmentRows& rows, const float* query,
           std::uint64_t& count)
      : kernel_(kernel), rows_(rows), query_(query), count_(count) {}

  // Prefetches a row. Call it some rows before Score, since candidates are scattered in memory.
  void Prefetch(std::uint32_t index) const {
    const float* row = rows_.rows.PaddedRow(index);
    for (std::size_t i = 0; i < rows_.rows.padded_dim(); i += kLineFloats)
      __builtin_prefetch(row + i);
  }
  float Score(std::uint32_t index) const {
    float score = 0;
    Score({&index, 1}, &score);
    return score;
  }
  // At most kRowsScoredTogether rows, which together cost little more than one.
  //   scores  [indices.size()]  written
  void Score(std::span<const std::uint32_t> indices, float* scores) const {
    assert(indices.size() <= kRowsScoredTogether);
    std::array<const float*, kRowsScoredTogether> rows;
    for (std::size_t i = 0; i < indices.size(); ++i) rows[i] = rows_.rows.PaddedRow(indices[i]);
    kernel_.score_scattered(rows.data(), indices.size(), query_, rows_.rows.padded_dim(), scores);
    count_ += indices.size();
  }
  Row RowOf(std::uint32_t index) const { return rows_.first_row + static_cast<Row>(index); }

 private:
  static constexpr std::size_t kLineFloats = 16;

  const certificate::CanonicalKernel& kernel_;
  const SegmentRows& rows_;
  const float* query_;
  std::uint64_t& count_;
};

// Scores rows scattered in memory: calls score(i) for i in 0 .. count - 1 in turn, and prefetch(i)
// eight calls before (estimated).
template <class Prefetch, class Score>
void ScoreInTurn(std::size_t count, Prefetch prefetch, Score score) {
  constexpr std::size_t kRowsAhead = 8;
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; ahead < count && ahead < i + kRowsAhead; ++ahead) prefetch(ahead);
    score(i);
  }
}

}  // namespace simile::backend::cpu
