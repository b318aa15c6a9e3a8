#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "certificate/canonical_score.h"
#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Prefetches the first lines of a row; the processor recognises a stream and continues by itself.
// Call it a few rows before the row is scored, because candidates are scattered in memory.
inline void PrefetchRow(MatrixView rows, std::size_t index) {
  constexpr std::size_t kLineFloats = 16;
  constexpr std::size_t kLines = 8;
  const float* row = rows.PaddedRow(index);
  const std::size_t end = std::min(rows.padded_dim(), kLines * kLineFloats);
  for (std::size_t i = 0; i < end; i += kLineFloats) __builtin_prefetch(row + i);
  // GCC 12 takes a function that only prefetches to have no effect, and removes its calls.
  asm volatile("" : : "r"(row));
}

// Forms canonical scores of single rows of a segment with one query.
class Rescorer {
 public:
  static constexpr std::size_t kRowsScoredTogether = 4;

  //   count  incremented by every score
  Rescorer(const certificate::CanonicalKernel& kernel, const SegmentRows& rows, const float* query,
           std::uint64_t& count)
      : kernel_(kernel), rows_(rows), query_(query), count_(count) {}

  void Prefetch(std::uint32_t index) const { PrefetchRow(rows_.rows, index); }
  float Score(std::uint32_t index) const {
    float score = 0;
    Score({&index, 1}, &score);
    return score;
  }
  // Scores at most kRowsScoredTogether rows, which together cost little more than one row.
  //   scores  [indices.size()]  written
  void Score(std::span<const std::uint32_t> indices, float* scores) const {
    assert(indices.size() <= kRowsScoredTogether);
    std::array<const float*, kRowsScoredTogether> rows;
    for (std::size_t i = 0; i < indices.size(); ++i) rows[i] = rows_.rows.PaddedRow(indices[i]);
    kernel_.score_scattered(rows.data(), indices.size(), query_, rows_.rows.padded_dim(), scores);
    count_ += indices.size();
  }
  Row first_row() const { return rows_.first_row; }
  Row ToRow(std::uint32_t index) const { return rows_.first_row + static_cast<Row>(index); }

 private:
  const certificate::CanonicalKernel& kernel_;
  const SegmentRows& rows_;
  const float* query_;
  std::uint64_t& count_;
};

// Scores rows scattered in memory: calls score(i) for i in 0 .. count - 1 in turn, each after
// prefetch(j) for all j < i + 4 (docs/design/cpu-engine.md).
template <class Prefetch, class Score>
void ScoreInTurn(std::size_t count, Prefetch prefetch, Score score) {
  constexpr std::size_t kRowsAhead = 4;
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; ahead < count && ahead < i + kRowsAhead; ++ahead) prefetch(ahead);
    score(i);
  }
}

}  // namespace simile::backend::cpu
