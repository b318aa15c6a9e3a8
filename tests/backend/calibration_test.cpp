#include "backend/cpu/calibration.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/int8_tuning.h"

namespace simile::backend::cpu {
namespace {

constexpr std::size_t kCacheBytes = 2U << 20;

// A machine on which the cost of every strategy is known and no time is disturbed.
class FakeMachine final : public CalibrationProbe {
 public:
  std::vector<TimePair> LargeAndSmall(std::size_t batch) override {
    return Measure("kernels", batch, large_to_small(batch));
  }
  std::vector<TimePair> GatherAndPass(std::size_t batch) override {
    return Measure("gather", batch, batch == 1 ? gather_for_one : gather_for_many);
  }
  std::vector<TimePair> ScanAndPass(std::size_t row_count) override {
    return Measure("scan", row_count, static_cast<double>(row_count) / scan_rows);
  }

  double large_to_small(std::size_t batch) const {
    if (batch == disturbed_batch) return 1.3;
    return large_batch / static_cast<double>(batch);
  }
  int measured(const std::string& measurement) const {
    const auto found = measured_.find(measurement);
    return found == measured_.end() ? 0 : found->second;
  }

  double large_batch = 8;
  std::size_t disturbed_batch = 0;
  double gather_for_one = 12;
  double gather_for_many = 12;
  double scan_rows = 2'048;
  std::string silent;  // the measurement that it has no time for

 private:
  std::vector<TimePair> Measure(const std::string& measurement, std::size_t, double ratio) {
    ++measured_[measurement];
    if (measurement == silent) return {{ratio, 1}};
    return std::vector<TimePair>(7, {ratio, 1});
  }

  std::map<std::string, int> measured_;
};

TEST(FindTuningTest, FindsWhereTheStrategiesCross) {
  FakeMachine machine;
  const TuningFindings wanted{.block_bytes = 256U * 1'024U,
                              .large_batch_min = 8,
                              .gather_share = 12,
                              .scan_rows_max = 2'048,
                              .int4_from_code_bytes = std::nullopt,
                              .queries_of_thread_min = std::nullopt};
  EXPECT_EQ(FindTuning(machine, true, kCacheBytes), wanted);
}

TEST(FindTuningTest, MeasuresOnceMoreBeyondTheCrossing) {
  FakeMachine machine;
  FindTuning(machine, true, kCacheBytes);
  EXPECT_EQ(machine.measured("kernels"), 4);  // 16, 8, 6, 5
  EXPECT_EQ(machine.measured("gather"), 2);
  EXPECT_EQ(machine.measured("scan"), 5);  // 512, 1024, 2048, 4096, 8192
}

TEST(FindTuningTest, FindsNoBatchWhereThereIsOneKernel) {
  FakeMachine machine;
  EXPECT_FALSE(FindTuning(machine, false, kCacheBytes).large_batch_min.has_value());
  EXPECT_EQ(machine.measured("kernels"), 0);
}

TEST(FindTuningTest, FindsNoBlockWhereTheCacheIsUnknown) {
  FakeMachine machine;
  EXPECT_FALSE(FindTuning(machine, true, std::nullopt).block_bytes.has_value());
}

TEST(FindTuningTest, LeavesOutWhatTheTimesDoNotDecide) {
  FakeMachine machine;
  machine.silent = "kernels";
  EXPECT_FALSE(FindTuning(machine, true, kCacheBytes).large_batch_min.has_value());
  machine.silent = "gather";
  EXPECT_FALSE(FindTuning(machine, true, kCacheBytes).gather_share.has_value());
  machine.silent = "scan";
  const TuningFindings findings = FindTuning(machine, true, kCacheBytes);
  EXPECT_FALSE(findings.scan_rows_max.has_value());
  EXPECT_EQ(findings.gather_share, 12U);
}

TEST(FindTuningTest, RejectsACrossingThatTheNextRatioContradicts) {
  FakeMachine machine;
  machine.disturbed_batch = 16;
  machine.large_batch = 4;
  EXPECT_FALSE(FindTuning(machine, true, kCacheBytes).large_batch_min.has_value());
}

// On any machine and under any load it ends, and its findings lie within their bounds.
TEST(CalibrateTest, FindsNumbersWithinTheirBounds) {
  Int8Options options = OptionsFor("");
  options.threads = 2;
  const TuningFindings findings = Calibrate(options);
  for (const TuningValue& value : TuningValues()) {
    const std::size_t found = MakeTuning(findings).*value.value;
    EXPECT_LE(value.min, found) << value.name;
    EXPECT_GE(value.max, found) << value.name;
  }
}

constexpr std::size_t kKiB = 1'024;

std::vector<TimePair> Pairs(std::initializer_list<double> firsts, double second) {
  std::vector<TimePair> pairs;
  for (const double first : firsts) pairs.push_back({first, second});
  return pairs;
}

TEST(MiddleRatioTest, IsTheMedianOfTheRatios) {
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({1.1, 0.9, 1, 1.2, 0.8}, 2)), 0.5);
}

TEST(MiddleRatioTest, IgnoresDisturbedSamples) {
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({1, 90, 1, 1, 70, 1, 1}, 2)), 0.5);
}

TEST(MiddleRatioTest, FindsNothingInFewSamples) {
  EXPECT_FALSE(MiddleRatio({}).has_value());
  EXPECT_FALSE(MiddleRatio(Pairs({1, 1, 1, 1}, 1)).has_value());
}

TEST(MiddleRatioTest, FindsNothingWhenMostSamplesWereDisturbed) {
  EXPECT_FALSE(MiddleRatio(Pairs({1, 90, 80, 1, 70, 60, 50}, 1)).has_value());
  // The same for the second strategy's times.
  EXPECT_FALSE(
      MiddleRatio(std::vector<TimePair>{{1, 1}, {1, 90}, {1, 80}, {1, 1}, {1, 70}}).has_value());
}

TEST(MiddleRatioTest, IgnoresTimesBelowTheClocksResolution) {
  EXPECT_FALSE(MiddleRatio(Pairs({0, 0, 0, 0, 0, 0}, 1)).has_value());
  EXPECT_FALSE(MiddleRatio(Pairs({1, 1, 1, 1, 1, 1}, 0)).has_value());
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({0, 1, 1, 1, 1, 1}, 1)), 1);
}

TEST(BlockBytesTest, IsAnEighthOfTheCacheWithinBounds) {
  EXPECT_EQ(BlockBytesFor(2'048 * kKiB), 256 * kKiB);
  EXPECT_EQ(BlockBytesFor(1'536 * kKiB), 192 * kKiB);
  EXPECT_EQ(BlockBytesFor(256 * kKiB), 128 * kKiB);
  EXPECT_EQ(BlockBytesFor(16'384 * kKiB), 1'024 * kKiB);
}

TEST(LargeBatchMinTest, IsTheLeastFromWhichTheLargeKernelStaysFaster) {
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.5}, {8, 0.8}, {6, 1}, {5, 1.1}}), 6U);
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.5}, {8, 0.8}, {5, 0.9}}), 5U);
  // Faster at five queries and slower at eight: noise, or the large kernel does not pay there.
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.9}, {8, 1.2}, {5, 0.9}}), 16U);
}

TEST(LargeBatchMinTest, IsBeyondTheLargestBatchWhenTheLargeKernelIsSlowerThere) {
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 1.01}}), 32U);
}

TEST(IsDeniedTest, DistinguishesAContradictionFromATie) {
  EXPECT_TRUE(IsDenied(std::vector<RatioAt>{{16, 1.3}, {8, 0.8}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 0.9}, {8, 1.01}, {4, 0.99}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 0.9}, {8, 0.8}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 1.3}}, 1));
}

TEST(GatherShareTest, IsTheGeometricMeanRoundedUp) {
  EXPECT_EQ(GatherShareFor(9, 9), 9U);
  EXPECT_EQ(GatherShareFor(20, 5), 10U);
  EXPECT_EQ(GatherShareFor(20, 5.1), 11U);
}

TEST(GatherShareTest, StaysWithinItsBounds) {
  EXPECT_EQ(GatherShareFor(0.5, 1), 4U);
  EXPECT_EQ(GatherShareFor(1e9, 1e9), 256U);
}

TEST(ScanRowsMaxTest, IsTheLargestSizeWhoseScanCostsHardlyMore) {
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 0.7}, {1'024, 1.09}, {2'048, 1.2}}), 1'024U);
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 0.7}, {1'024, 1.5}, {2'048, 0.9}}), 512U);
}

TEST(ScanRowsMaxTest, StaysWithinItsBounds) {
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 3}}), 256U);
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{1U << 20, 0.1}}), 16'384U);
}

TEST(TuningValuesTest, HaveDefaultsWithinTheirBounds) {
  for (const TuningValue& value : TuningValues()) {
    EXPECT_LE(value.min, Int8Tuning{}.*value.value) << value.name;
    EXPECT_GE(value.max, Int8Tuning{}.*value.value) << value.name;
  }
}

TEST(TuningValuesTest, PutFindingsOverTheDefaults) {
  TuningFindings findings;
  Int8Tuning wanted;
  EXPECT_EQ(MakeTuning(findings), wanted);
  findings.gather_share = 99;
  wanted.gather_share = 99;
  EXPECT_EQ(MakeTuning(findings), wanted);
}

}  // namespace
}  // namespace simile::backend::cpu
