#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/load/dataset.h"
#include "simile/matrix_view.h"

namespace simile::cli {

// The range that must contain a row's score. Computed in double precision and widened by the
// rounding of the server's fp32 arithmetic; usually a few units in the last place wide.
struct ScoreRange {
  double low = 0;
  double high = 0;
};

// A vector to compare rows with, in double precision.
struct WeightedVector {
  std::vector<double> values;  // [dim]
  double weight = 1;
  // The factor by which the vector's computation magnified its relative rounding error: 1 for a
  // vector that is rounded once.
  double magnification = 1;
};

// How a row's similarities become its score, as search.proto defines it.
struct ScoreRule {
  enum class Kind : std::uint8_t { kSimilarity, kBestScore, kSumScores };
  Kind kind = Kind::kSimilarity;
  std::vector<WeightedVector> positive = {};  // exactly one for kSimilarity
  std::vector<WeightedVector> negative = {};  // none for kSimilarity
};

// Computes the scores that a collection must return, from its files, in double precision and
// without any part of the engine. Borrows the dataset.
class Oracle {
 public:
  explicit Oracle(const data::Dataset& dataset) : dataset_(dataset) {}

  const data::Dataset& dataset() const { return dataset_; }
  std::size_t row_count() const { return dataset_.vectors.row_count(); }
  std::size_t dim() const { return dataset_.vectors.dim(); }

  std::vector<double> ItemVector(Row row) const;
  std::vector<double> UserVector(Row user) const;
  // Whether a search may return the row: false for a zero row that on_zero_row skips.
  bool IsSearchable(Row row) const;
  // The vector at unit length for cosine, unchanged for the dot product. REQUIRES: not zero for
  // cosine.
  std::vector<double> Normalized(std::vector<double> vector) const;
  // Average: the weighted mean of `positive`; if there are `negative` vectors, twice this mean
  // minus their mean. Blend: a target blended with a user's profile. Both results are Normalized,
  // as queries are.
  WeightedVector Average(std::span<const WeightedVector> positive,
                         std::span<const WeightedVector> negative) const;
  WeightedVector Blend(const std::vector<double>& target, const std::vector<double>& profile,
                       double user_weight) const;

  // The scores of all rows. Cost: rows x dim multiply-adds per vector, on all processors.
  std::vector<ScoreRange> Scores(const ScoreRule& rule) const;
  // The similarity of two rows.
  ScoreRange RowSimilarity(Row a, Row b) const;

 private:
  WeightedVector Combined(std::vector<double> sum, double reach) const;
  double Tolerance(const WeightedVector& vector) const;

  const data::Dataset& dataset_;
};

}  // namespace simile::cli
