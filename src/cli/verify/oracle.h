#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "simile/matrix_view.h"

namespace simile::cli {

// The score that a row must have, as far as the rounding of fp32 arithmetic lets double precision
// tell. Mostly a few units in the last place wide.
struct ScoreRange {
  double low = 0;
  double high = 0;
};

// A vector that rows are compared with, in double precision.
struct WeightedVector {
  std::vector<double> values;  // [dim]
  double weight = 1;
  // How many times its own relative rounding error is magnified by how it was made: 1 for a vector
  // that is rounded once.
  double magnification = 1;
};

// How the similarities of a row become its score, as search.proto defines it.
struct ScoreRule {
  enum class Kind : std::uint8_t { kSimilarity, kBestScore, kSumScores };
  Kind kind = Kind::kSimilarity;
  std::vector<WeightedVector> positive = {};  // exactly one for kSimilarity
  std::vector<WeightedVector> negative = {};  // none for kSimilarity
};

// Computes what a collection must answer from its files, in double precision and without any part
// of the engine. Borrows the dataset.
class Oracle {
 public:
  explicit Oracle(const data::Dataset& dataset) : dataset_(dataset) {}

  const data::Dataset& dataset() const { return dataset_; }
  std::size_t row_count() const { return dataset_.vectors.row_count(); }
  std::size_t dim() const { return dataset_.vectors.dim(); }

  std::vector<double> ItemVector(Row row) const;
  std::vector<double> UserVector(Row user) const;
  // Whether a search may return the row: not one that on_zero_row skips.
  bool IsSearchable(Row row) const;
  // At unit length for cosine, unchanged for the dot product. REQUIRES: not zero for cosine.
  std::vector<double> Normalized(std::vector<double> vector) const;
  // The weighted mean of `positive`, twice it less that of `negative` when there are any; and the
  // blend of a vector with a profile. Both as a query: Normalized.
  WeightedVector Average(std::span<const WeightedVector> positive,
                         std::span<const WeightedVector> negative) const;
  WeightedVector Blend(const std::vector<double>& target, const std::vector<double>& profile,
                       double user_weight) const;

  // The scores of all rows. Cost: rows x dim multiply-adds for each vector, on all processors.
  std::vector<ScoreRange> Scores(const ScoreRule& rule) const;
  // The similarity of two rows.
  ScoreRange RowSimilarity(Row a, Row b) const;

 private:
  WeightedVector Combined(std::vector<double> sum, double reach) const;
  double Tolerance(const WeightedVector& vector) const;

  const data::Dataset& dataset_;
};

}  // namespace simile::cli
