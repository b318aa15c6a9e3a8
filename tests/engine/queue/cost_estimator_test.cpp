#include "engine/queue/cost_estimator.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace simile::engine {
namespace {

constexpr int kOne = 1;
constexpr int kOther = 2;
constexpr CostEstimator::Shape kShape = {&kOne, 62'423ULL * 384};
constexpr CostEstimator::Shape kOtherShape = {&kOther, 62'423ULL * 384};

TEST(CostEstimatorTest, BeginsWithAModel) {
  const CostEstimator estimator;
  EXPECT_GT(estimator.PassMs(kShape, 1), 0.1);
  EXPECT_LT(estimator.PassMs(kShape, 1), 10);
  EXPECT_GT(estimator.PassMs(kShape, 64), estimator.PassMs(kShape, 1));
  EXPECT_GT(estimator.PassMs({&kOne, 10 * kShape.values}, 1), estimator.PassMs(kShape, 1));
  EXPECT_GT(estimator.ScoresMs(384e6), 1);
}

TEST(CostEstimatorTest, FollowsWhatPassesTook) {
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) {
    estimator.AddPass(kShape, 1, 3);
    estimator.AddPass(kShape, 64, 8);
  }
  EXPECT_NEAR(estimator.PassMs(kShape, 1), 3, 0.1);
  EXPECT_NEAR(estimator.PassMs(kShape, 64), 8, 0.2);
  // Each size has its own correction, and those between follow the nearest.
  EXPECT_GT(estimator.PassMs(kShape, 20), 2);
  EXPECT_LT(estimator.PassMs(kShape, 20), 12);
}

TEST(CostEstimatorTest, KeepsSnapshotsApartAndBeginsANewOneWithWhatAllTook) {
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) estimator.AddPass(kShape, 1, 3);
  EXPECT_NEAR(estimator.PassMs(kOtherShape, 1), 3, 0.1);
  for (int i = 0; i < 20; ++i) estimator.AddPass(kOtherShape, 1, 30);
  EXPECT_NEAR(estimator.PassMs(kOtherShape, 1), 30, 1);
  EXPECT_NEAR(estimator.PassMs(kShape, 1), 3, 0.1);
}

TEST(CostEstimatorTest, IsNotMisledByOnePassThatWasHeldUp) {
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) estimator.AddPass(kShape, 1, 3);
  estimator.AddPass(kShape, 1, 300);
  EXPECT_LT(estimator.PassMs(kShape, 1), 12);
}

TEST(CostEstimatorTest, FindsHowManySearchesATimeIsEnoughFor) {
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) {
    estimator.AddPass(kShape, 1, 2);
    estimator.AddPass(kShape, 128, 12);
    estimator.AddPass(kShape, 512, 45);
  }
  for (const double ms : {0.001, 2.0, 5.0, 20.0, 1e6}) {
    const std::uint32_t within = estimator.SearchesWithin(kShape, ms, 1'000);
    EXPECT_GE(within, 1U) << ms;
    EXPECT_LE(within, 1'000U) << ms;
    if (within > 1) {
      EXPECT_LE(estimator.PassMs(kShape, within), ms);
    }
    if (within < 1'000) {
      EXPECT_GT(estimator.PassMs(kShape, within + 1), ms);
    }
  }
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e6, 1'000), 1'000U);
}

TEST(CostEstimatorTest, GrowsStepByStepFromWhatItHasMeasured) {
  CostEstimator estimator;
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e6, 1'000), CostEstimator::kFirstSearchesMax);
  estimator.AddPass(kShape, 3, 0.1);
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e6, 1'000), CostEstimator::kFirstSearchesMax);
  estimator.AddPass(kShape, 60, 0.1);
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e6, 1'000), 240U);
  estimator.AddPass(kShape, 240, 0.1);
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e6, 1'000), 960U);
}

TEST(CostEstimatorTest, GrowsFromPassesWhoseTimeSaysNothing) {
  CostEstimator estimator;
  estimator.AddPass(kShape, 16, 4);
  const double before = estimator.PassMs(kShape, 64);
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e9, 1'024), 64U);
  estimator.AddPassSize(kShape, 64);
  EXPECT_EQ(estimator.SearchesWithin(kShape, 1e9, 1'024), 256U);
  EXPECT_EQ(estimator.PassMs(kShape, 64), before);
}

TEST(CostEstimatorTest, PutsListsIntoClassesByTheirLength) {
  for (const std::uint32_t k : {1U, 10U, 255U})
    EXPECT_EQ(CostEstimator::ToKClass(k, 1'000'000), 0U);
  EXPECT_EQ(CostEstimator::ToKClass(256, 1'000'000), 1U);
  EXPECT_EQ(CostEstimator::ToKClass(5'000, 1'000'000), 5U);
  EXPECT_EQ(CostEstimator::ToKClass(10'000, 1'000'000), 6U);
  EXPECT_EQ(CostEstimator::ToKClass(10'000, 300), 1U) << "there are no more rows";
}

TEST(CostEstimatorTest, KeepsLongListsApartFromShortOnes) {
  const CostEstimator::Shape films{&kOne, 5'000ULL * 384, 0};
  CostEstimator::Shape deep = films;
  deep.k_class = CostEstimator::ToKClass(5'000, 5'000);
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) estimator.AddPass(films, 1, 0.02);
  EXPECT_GT(estimator.PassMs(deep, 1), 0.5) << "before any was measured";
  for (int i = 0; i < 20; ++i) estimator.AddPass(deep, 1, 2);
  EXPECT_NEAR(estimator.PassMs(deep, 1), 2, 0.1);
  EXPECT_NEAR(estimator.PassMs(films, 1), 0.02, 0.001);
}

// The first search of a collection is alone, and cold.
TEST(CostEstimatorTest, TakesAPassToCostNoMoreThanALargerOne) {
  CostEstimator estimator;
  estimator.AddPass(kShape, 1, 300);
  EXPECT_NEAR(estimator.PassMs(kShape, 1), 300, 1);
  for (int i = 0; i < 20; ++i) estimator.AddPass(kShape, 64, 20);
  EXPECT_NEAR(estimator.PassMs(kShape, 1), 20, 1);
  EXPECT_LE(estimator.PassMs(kShape, 2), 20);
}

TEST(CostEstimatorTest, CorrectsScoresByWhatTheyTook) {
  CostEstimator estimator;
  for (int i = 0; i < 20; ++i) estimator.AddScores(1e6, 4);
  EXPECT_NEAR(estimator.ScoresMs(2e6), 8, 0.1);
  estimator.AddScores(0, 5);
  EXPECT_NEAR(estimator.ScoresMs(2e6), 8, 0.1);
}

TEST(CostEstimatorTest, RemembersABoundedNumberOfShapes) {
  CostEstimator estimator;
  const std::vector<int> snapshots(CostEstimator::kShapesMax + 10);
  for (const int& snapshot : snapshots) {
    for (int i = 0; i < 20; ++i) estimator.AddPass({&snapshot, kShape.values}, 1, 3);
    estimator.AddPass(kShape, 1, 30);  // measured again and again, so it is never forgotten
  }
  EXPECT_NEAR(estimator.PassMs(kShape, 1), 30, 1);
}

TEST(CostEstimatorTest, KnowsFromWhereOnLargerPassesMakeNoSearchCheaper) {
  // A million rows of 384 dimensions on two cores: milliseconds of a pass of 1, 2, 4 .. 1,024.
  constexpr std::array kAvx512Vnni{8.5,  8.7,   9.3,   12.0,  16.9, 30.0,
                                   56.0, 111.0, 223.0, 443.0, 886.0};
  constexpr std::array kAmx{7.7, 7.8, 8.0, 9.0, 10.5, 12.5, 15.0, 22.0, 40.0, 75.0, 145.0};
  const auto pays = [](const auto& passes, std::uint32_t searches_max) {
    CostEstimator estimator;
    const int rows = 0;
    const CostEstimator::Shape shape{&rows, 384'000'000};
    for (std::size_t size = 0; size < passes.size(); ++size) {
      estimator.AddPass(shape, 1U << size, passes[size]);
    }
    return estimator.SearchesThatPay(shape, searches_max);
  };
  EXPECT_EQ(pays(kAvx512Vnni, 1'024), 64U);
  EXPECT_EQ(pays(kAvx512Vnni, 20), 20U);
  EXPECT_EQ(pays(kAmx, 1'024), 512U);
  EXPECT_EQ(pays(kAmx, 1), 1U);
}

}  // namespace
}  // namespace simile::engine
