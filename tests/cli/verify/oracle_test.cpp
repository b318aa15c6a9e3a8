// The oracle against scores worked out by hand, and against the canonical score.
#include "cli/verify/oracle.h"

#include <cmath>

#include <gtest/gtest.h>

#include "certificate/canonical_score.h"
#include "certificate/combined_score.h"
#include "engine/sample_data.h"

namespace simile::cli {
namespace {

// Two rows at right angles and one between them.
data::Dataset ThreeRows(Metric metric) {
  data::Dataset dataset;
  dataset.metric = metric;
  dataset.vectors = engine::MakeMatrix({{1, 0}, {0, 1}, {0.6F, 0.8F}});
  dataset.longest_row = 1;
  return dataset;
}

void ExpectContains(const ScoreRange& range, double score) {
  EXPECT_LE(range.low, score);
  EXPECT_GE(range.high, score);
  EXPECT_LT(range.high - range.low, 1e-5);
}

TEST(OracleTest, ScoresByExamplesAsTheContractDefinesThem) {
  const data::Dataset dataset = ThreeRows(Metric::kCosine);
  const Oracle oracle(dataset);
  const WeightedVector first{.values = {1, 0}};
  const WeightedVector second{.values = {0, 1}, .weight = 2};

  // 2 * (1, 0) - (0, 1), at unit length.
  const WeightedVector average = oracle.Average({&first, 1}, {&second, 1});
  EXPECT_NEAR(average.values[0], 2 / std::sqrt(5.0), 1e-15);
  EXPECT_NEAR(average.values[1], -1 / std::sqrt(5.0), 1e-15);

  const auto sums = oracle.Scores(
      {.kind = ScoreRule::Kind::kSumScores, .positive = {first}, .negative = {second}});
  ExpectContains(sums[2], 0.6 - 2 * 0.8);

  const auto best = oracle.Scores(
      {.kind = ScoreRule::Kind::kBestScore, .positive = {first}, .negative = {second}});
  ExpectContains(best[0], (1.0 / 2 + 1) / 2);     // nearer to the positive example
  ExpectContains(best[2], -(1.6 / 2.6 + 1) / 2);  // nearer to the negative one
}

TEST(OracleTest, BlendsTwoVectorsByWeight) {
  const data::Dataset dataset = ThreeRows(Metric::kDot);
  const Oracle oracle(dataset);
  const WeightedVector blend = oracle.Blend({1, 0}, {0, 1}, 0.25);
  EXPECT_DOUBLE_EQ(blend.values[0], 0.75);
  EXPECT_DOUBLE_EQ(blend.values[1], 0.25);
}

TEST(OracleTest, ScoresVectorsOfZerosAsZero) {
  const data::Dataset dataset = ThreeRows(Metric::kDot);
  const Oracle oracle(dataset);
  const WeightedVector zero{.values = {0, 0}};
  for (const WeightedVector& vector :
       {zero, oracle.Average({&zero, 1}, {}), oracle.Blend({0, 0}, {0, 0}, 0.5)}) {
    for (const ScoreRange& range : oracle.Scores({.positive = {vector}})) ExpectContains(range, 0);
  }
}

TEST(OracleTest, KnowsWhichRowsNoSearchReturns) {
  data::Dataset dataset = ThreeRows(Metric::kCosine);
  dataset.vectors = engine::MakeMatrix({{1, 0}, {0, 0}, {0.6F, 0.8F}});
  dataset.skipped_rows = {1};
  const Oracle oracle(dataset);
  EXPECT_TRUE(oracle.IsSearchable(0));
  EXPECT_FALSE(oracle.IsSearchable(1));
  EXPECT_TRUE(oracle.IsSearchable(2));
}

TEST(OracleTest, RangesContainTheCanonicalScoreAndAreNarrow) {
  const auto dataset = engine::RandomDataset(200, 100, 3);
  const Oracle oracle(*dataset);
  const MatrixView rows = dataset->vectors.view();
  const auto scores = oracle.Scores({.positive = {{.values = oracle.ItemVector(17)}}});
  for (Row row = 0; row < 200; ++row) {
    ExpectContains(scores[row], certificate::CanonicalScoreReference(rows[row], rows[17]));
  }
}

TEST(OracleTest, RangesContainCombinedScores) {
  const auto dataset = engine::RandomDataset(200, 100, 5);
  const Oracle oracle(*dataset);
  const MatrixView rows = dataset->vectors.view();
  const std::vector<float> weights = {0.7F, 1.3F, 0.9F};
  ScoreRule rule;
  for (const Row row : {1U, 2U}) {
    rule.positive.push_back({.values = oracle.ItemVector(row), .weight = weights[row - 1]});
  }
  rule.negative.push_back({.values = oracle.ItemVector(3), .weight = weights[2]});
  rule.kind = ScoreRule::Kind::kBestScore;
  const auto best = oracle.Scores(rule);
  rule.kind = ScoreRule::Kind::kSumScores;
  const auto sums = oracle.Scores(rule);
  for (Row row = 0; row < 200; ++row) {
    std::vector<float> similarities;
    for (const Row example : {1U, 2U, 3U}) {
      similarities.push_back(certificate::CanonicalScoreReference(rows[row], rows[example]));
    }
    const float best_score = certificate::BestScore(similarities, weights, 2);
    EXPECT_GE(best_score, best[row].low);
    EXPECT_LE(best_score, best[row].high);
    ExpectContains(sums[row], certificate::SumScores(similarities, weights, 2));
  }
}

}  // namespace
}  // namespace simile::cli
