#include "cli/verify/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "base/threads.h"
#include "certificate/canonical_score.h"

namespace simile::cli {
namespace {

constexpr double kUnit = 0x1p-24;  // half the distance from 1 to the next fp32 number

std::vector<double> AsDoubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

double MeasureLength(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

template <class Number>
double Dot(std::span<const Number> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Splits 0..count into ranges and calls work(first, last) for them on all processors.
template <class Work>
void InShares(std::size_t count, Work work) {
  const std::size_t threads = base::UsableCpuCount();
  const std::size_t share = (count + threads - 1) / threads;
  std::vector<std::jthread> workers;
  for (std::size_t first = 0; first < count; first += share) {
    workers.emplace_back([=] { work(first, std::min(first + share, count)); });
  }
}

double Squash(double x) { return (x / (1 + std::abs(x)) + 1) / 2; }

// Widens a range by the rounding of its result to fp32.
ScoreRange Rounded(ScoreRange range) {
  const double slack = 2 * kUnit * std::max(std::abs(range.low), std::abs(range.high)) + 0x1p-126;
  return {range.low - slack, range.high + slack};
}

// One row's similarities, multiplied by weights: the greatest, and the sum.
struct Summary {
  ScoreRange greatest{-std::numeric_limits<double>::infinity(),
                      -std::numeric_limits<double>::infinity()};
  ScoreRange sum;

  void Add(double product, double tolerance) {
    greatest.low = std::max(greatest.low, product - tolerance);
    greatest.high = std::max(greatest.high, product + tolerance);
    sum.low += product - tolerance;
    sum.high += product + tolerance;
  }
};

// The range of best_score. Squash is monotonic. If the ranges of positive and negative overlap,
// both branches may apply.
ScoreRange BestScore(const Summary& positive, const Summary& negative) {
  const ScoreRange& p = positive.greatest;
  const ScoreRange& n = negative.greatest;
  const ScoreRange liked{Squash(p.low), Squash(p.high)};
  const ScoreRange disliked{-Squash(n.high), -Squash(n.low)};
  if (p.low > n.high) return Rounded(liked);
  if (p.high <= n.low) return Rounded(disliked);
  return Rounded({disliked.low, liked.high});
}

}  // namespace

std::vector<double> Oracle::ItemVector(Row row) const {
  return AsDoubles(dataset_.vectors.view()[row]);
}

std::vector<double> Oracle::UserVector(Row user) const {
  return AsDoubles(dataset_.profiles.vectors.view()[user]);
}

bool Oracle::IsSearchable(Row row) const {
  return !std::ranges::binary_search(dataset_.skipped_rows, row);
}

std::vector<double> Oracle::Normalized(std::vector<double> vector) const {
  if (dataset_.metric != Metric::kCosine) return vector;
  const double length = MeasureLength(vector);
  for (double& value : vector) value /= length;
  return vector;
}

WeightedVector Oracle::Combined(std::vector<double> sum, double reach) const {
  WeightedVector combined;
  if (reach > 0) combined.magnification = 1 + reach / MeasureLength(sum);
  combined.values = Normalized(std::move(sum));
  return combined;
}

WeightedVector Oracle::Average(std::span<const WeightedVector> positive,
                               std::span<const WeightedVector> negative) const {
  std::vector<double> sum(dim());
  double reach = 0;
  const auto add = [&](std::span<const WeightedVector> vectors, double factor) {
    double total = 0;
    for (const WeightedVector& vector : vectors) total += vector.weight;
    for (const WeightedVector& vector : vectors) {
      const double share = factor * vector.weight / total;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += share * vector.values[i];
      reach += std::abs(share) * MeasureLength(vector.values);
    }
  };
  add(positive, negative.empty() ? 1.0 : 2.0);
  add(negative, -1.0);
  return Combined(std::move(sum), reach);
}

WeightedVector Oracle::Blend(const std::vector<double>& target, const std::vector<double>& profile,
                             double user_weight) const {
  std::vector<double> sum(dim());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = (1 - user_weight) * target[i] + user_weight * profile[i];
  }
  const double reach =
      (1 - user_weight) * MeasureLength(target) + user_weight * MeasureLength(profile);
  return Combined(std::move(sum), reach);
}

// The error bound of a score: the server rounds the vector to fp32 and computes the canonical score
// in fp32.
double Oracle::Tolerance(const WeightedVector& vector) const {
  const double length = MeasureLength(vector.values);
  const double row = dataset_.longest_row;
  return certificate::CanonicalScoreError(dim(), length * (1 + kUnit), row) +
         2 * kUnit * vector.magnification * length * row;
}

std::vector<ScoreRange> Oracle::Scores(const ScoreRule& rule) const {
  std::vector<ScoreRange> scores(row_count());
  std::vector<double> positive_tolerances;
  std::vector<double> negative_tolerances;
  for (const auto& vector : rule.positive) positive_tolerances.push_back(Tolerance(vector));
  for (const auto& vector : rule.negative) negative_tolerances.push_back(Tolerance(vector));
  const MatrixView rows = dataset_.vectors.view();
  const auto summary_of = [&](Row row, const std::vector<WeightedVector>& vectors,
                              const std::vector<double>& tolerances) {
    Summary summary;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const double weight = vectors[i].weight;
      const double product = weight * Dot(rows[row], std::span<const double>(vectors[i].values));
      summary.Add(product, weight * tolerances[i] + 2 * kUnit * std::abs(product));
    }
    return summary;
  };
  InShares(scores.size(), [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const Row row = static_cast<Row>(i);
      const Summary positive = summary_of(row, rule.positive, positive_tolerances);
      if (rule.kind == ScoreRule::Kind::kSimilarity) {
        scores[i] = positive.sum;
        continue;
      }
      const Summary negative = summary_of(row, rule.negative, negative_tolerances);
      scores[i] = rule.kind == ScoreRule::Kind::kBestScore
                      ? BestScore(positive, negative)
                      : Rounded({positive.sum.low - negative.sum.high,
                                 positive.sum.high - negative.sum.low});
    }
  });
  return scores;
}

ScoreRange Oracle::RowSimilarity(Row a, Row b) const {
  const WeightedVector vector{.values = ItemVector(a)};
  const double score = Dot(dataset_.vectors.view()[b], std::span<const double>(vector.values));
  const double tolerance = Tolerance(vector);
  return {score - tolerance, score + tolerance};
}

}  // namespace simile::cli
