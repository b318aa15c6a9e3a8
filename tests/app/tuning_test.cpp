#include "app/tuning.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/tuning_cache.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Options;
using backend::cpu::Int8Tuning;
using backend::cpu::TuningFindings;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StoppedClock final : public Clock {
 public:
  TimePoint Now() const override { return now; }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::from_time_t(1'795'219'200);  // 2026-11-21
  }
  TimePoint now{};
};

class TuningTest : public testing::Test {
 protected:
  TuningTest() { config_.tuning_cache = scratch_.path() / "home" / "tuning.json"; }

  TuningInForce Ensure() {
    return EnsureTuning(
        config_,
        [this](const Int8Options& options) {
          ++measurements_;
          threads_ = options.threads;
          clock_.now += milliseconds(250);
          return findings_;
        },
        clock_);
  }

  const ScratchFolder scratch_;
  Config config_;
  TuningFindings findings_{
      .block_bytes = 256U << 10, .large_batch_min = 6, .gather_share = 9, .scan_rows_max = 512};
  const Int8Tuning measured_{
      .block_bytes = 256U << 10, .large_batch_min = 6, .gather_share = 9, .scan_rows_max = 512};
  StoppedClock clock_;
  int measurements_ = 0;
  unsigned threads_ = 0;
};

TEST_F(TuningTest, MeasuresOnceAndReadsTheCacheAfterwards) {
  config_.backend.threads = 3;
  const TuningInForce first = Ensure();
  EXPECT_EQ(first.tuning, measured_);
  EXPECT_TRUE(first.measured);
  EXPECT_EQ(first.took, milliseconds(250));
  EXPECT_TRUE(first.cache.ok()) << first.cache;
  EXPECT_EQ(threads_, 3U);
  const TuningInForce second = Ensure();
  EXPECT_EQ(second.tuning, measured_);
  EXPECT_FALSE(second.measured);
  EXPECT_EQ(second.origins, first.origins);
  EXPECT_THAT(second.origins, Each(StartsWith("measured 2026-11-21 on ")));
  EXPECT_THAT(second.origins, Each(HasSubstr(", 3 threads, ")));
  EXPECT_EQ(measurements_, 1);
}

TEST_F(TuningTest, MeasuresAgainForOtherThreads) {
  Ensure();
  config_.backend.threads = 7;
  Ensure();
  EXPECT_EQ(measurements_, 2);
}

TEST_F(TuningTest, MeasuresAtEachStartWithoutAFile) {
  config_.tuning_cache.clear();
  EXPECT_TRUE(Ensure().cache.ok());
  EXPECT_EQ(Ensure().tuning, measured_);
  EXPECT_EQ(measurements_, 2);
}

TEST_F(TuningTest, MeasuresForTheFallbackOfAGpu) {
  config_.backend.preference = backend::Preference::kGpu;
  EXPECT_EQ(Ensure().tuning, measured_);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(TuningTest, MeasuresNothingWhenTheTuningIsNotUsed) {
  config_.tuning = Tuning::kDefaults;
  EXPECT_EQ(Ensure().tuning, Int8Tuning{});
  EXPECT_THAT(Ensure().origins, Each(std::string("default")));
  config_.tuning = Tuning::kAuto;
  config_.backend.cpu_engine = backend::CpuEngine::kScan;
  Ensure();
  config_.backend.cpu_engine = backend::CpuEngine::kInt8;
  config_.backend.isa = "sse9";  // ChooseBackend refuses it
  Ensure();
  EXPECT_EQ(measurements_, 0);
}

TEST_F(TuningTest, UsesTheMeasurementWhenTheCacheIsAnotherKindOfFile) {
  scratch_.Write("home/tuning.json", "not ours");
  const TuningInForce in_force = Ensure();
  EXPECT_EQ(in_force.tuning, measured_);
  EXPECT_TRUE(absl::IsInvalidArgument(in_force.cache)) << in_force.cache;
}

TEST_F(TuningTest, UsesTheMeasurementWhenTheCacheCannotBeWritten) {
  scratch_.Write("home", "a file");
  const TuningInForce in_force = Ensure();
  EXPECT_EQ(in_force.tuning, measured_);
  EXPECT_TRUE(absl::IsUnavailable(in_force.cache)) << in_force.cache;
}

TEST_F(TuningTest, CompletesAPartialMeasurementOverSeveralStarts) {
  findings_.gather_share.reset();
  TuningInForce in_force = Ensure();
  EXPECT_FALSE(in_force.complete);
  EXPECT_EQ(in_force.tuning.scan_rows_max, 512U);
  EXPECT_EQ(in_force.tuning.gather_share, Int8Tuning{}.gather_share);
  EXPECT_EQ(in_force.origins[2], "default");
  findings_ = {};
  findings_.gather_share = 9;
  in_force = Ensure();
  EXPECT_TRUE(in_force.complete);
  EXPECT_EQ(in_force.tuning, measured_);
  EXPECT_EQ(Ensure().tuning, measured_);
  EXPECT_EQ(measurements_, 2);
}

TEST_F(TuningTest, IsCompleteWithoutABatchSizeWhenThereIsOneKernel) {
  config_.backend.isa = "portable";
  findings_.large_batch_min.reset();
  Ensure();
  EXPECT_EQ(Ensure().tuning.large_batch_min, Int8Tuning{}.large_batch_min);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(TuningTest, ReportsTheKnownTuningWithoutMeasuring) {
  EXPECT_THAT(KnownTuning(config_).origins,
              Each(std::string("not measured yet; the first serve measures")));
  const TuningInForce ensured = Ensure();
  EXPECT_EQ(KnownTuning(config_).tuning, measured_);
  EXPECT_EQ(KnownTuning(config_).origins, ensured.origins);
  scratch_.Write("home/tuning.json", "not ours");
  EXPECT_FALSE(KnownTuning(config_).cache.ok());
  config_.tuning_cache.clear();
  EXPECT_THAT(KnownTuning(config_).origins,
              Each(std::string("not measured yet; each serve measures")));
  config_.tuning = Tuning::kDefaults;
  EXPECT_THAT(KnownTuning(config_).origins, Each(std::string("default")));
}

}  // namespace
}  // namespace simile::app
