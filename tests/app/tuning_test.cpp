#include "app/tuning/tuning.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/tuning/tuning_cache.h"
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

  TuningInForce Ensure() { return EnsureTuning(config_, Measurement(), clock_); }
  absl::StatusOr<MeasuredTuning> Measured() {
    return MeasureTuning(config_, Measurement(), clock_);
  }
  Measure Measurement() {
    return [this](const Int8Options& options) {
      ++measurements_;
      threads_ = options.threads;
      clock_.now += milliseconds(250);
      return findings_;
    };
  }

  const ScratchFolder scratch_;
  Config config_;
  TuningFindings findings_{.block_bytes = 256U << 10,
                           .large_batch_min = 6,
                           .gather_share = 9,
                           .scan_rows_max = 512,
                           .int4_from_code_bytes = std::nullopt,
                           .queries_of_thread_min = std::nullopt};
  const Int8Tuning measured_ = backend::cpu::MakeTuning(findings_);
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
  // The first four; the calibration does not measure the other two.
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(second.origins[i], StartsWith("measured 2026-11-21 on "));
    EXPECT_THAT(second.origins[i], HasSubstr(", 3 threads, "));
  }
  EXPECT_EQ(second.origins[4], "default");
  EXPECT_EQ(second.threads, 3U);
  EXPECT_EQ(second.threads_origin, "backend.threads");
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

// The findings of `simile tune` replace the calibration's, and stay when the calibration is made
// anew.
TEST_F(TuningTest, PutsWhatWasTunedOverTheCalibration) {
  findings_.scan_rows_max.reset();
  absl::StatusOr<MeasuredTuning> measured = Measured();
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_FALSE(std::filesystem::exists(config_.tuning_cache));
  measured->tuned = TunedFindings{"2026-11-23", {"films", "songs"}, std::nullopt, {}};
  measured->tuned->findings.gather_share = 40;
  measured->tuned->findings.queries_of_thread_min = 64;
  ASSERT_TRUE(WriteTuningCache(config_.tuning_cache, *measured).ok());
  findings_.scan_rows_max = 512;
  for (const TuningInForce& in_force : {Ensure(), KnownTuning(config_), Ensure()}) {
    EXPECT_EQ(in_force.tuning.gather_share, 40U);
    EXPECT_EQ(in_force.tuning.queries_of_thread_min, 64U);
    EXPECT_EQ(in_force.tuning.large_batch_min, 6U);
    EXPECT_EQ(in_force.tuning.scan_rows_max, 512U);
    EXPECT_THAT(in_force.origins[2], StartsWith("tuned 2026-11-23 for films, songs on "));
    EXPECT_THAT(in_force.origins[1], StartsWith("measured 2026-11-21 on "));
    EXPECT_EQ(in_force.origins[4], "default");
    EXPECT_THAT(in_force.origins[5], StartsWith("tuned 2026-11-23"));
    EXPECT_EQ(in_force.threads_origin, "every core this process may use");
  }
  EXPECT_EQ(measurements_, 2);
}

TEST_F(TuningTest, UsesTunedThreadsUnlessTheConfigurationSetsThem) {
  const unsigned usable = KnownTuning(config_).threads;
  if (usable < 2) GTEST_SKIP() << "one processor leaves no choice of threads";
  absl::StatusOr<MeasuredTuning> measured = Measured();
  ASSERT_TRUE(measured.ok()) << measured.status();
  measured->tuned = TunedFindings{"2026-11-23", {"films"}, 1, {}};
  measured->tuned->findings.gather_share = 40;
  ASSERT_TRUE(WriteTuningCache(config_.tuning_cache, *measured).ok());
  const TuningInForce tuned = Ensure();
  EXPECT_EQ(tuned.threads, 1U);
  EXPECT_THAT(tuned.threads_origin, StartsWith("tuned 2026-11-23 for films on "));
  EXPECT_EQ(tuned.Over(config_.backend).threads, 1U);
  EXPECT_EQ(tuned.Over(config_.backend).tuning.gather_share, 40U);
  // The same number as without a setting, but set: what was tuned for one thread is not in force.
  config_.backend.threads = usable;
  const TuningInForce set = Ensure();
  EXPECT_EQ(set.threads, usable);
  EXPECT_EQ(set.threads_origin, "backend.threads");
  EXPECT_EQ(set.tuning.gather_share, 9U);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(TuningTest, RefusesToMeasureForAConfigurationThatDoesNotUseIt) {
  config_.tuning = Tuning::kDefaults;
  EXPECT_THAT(std::string(Measured().status().message()), StartsWith("backend.tuning is defaults"));
  config_.tuning = Tuning::kAuto;
  config_.backend.cpu_engine = backend::CpuEngine::kScan;
  EXPECT_TRUE(absl::IsFailedPrecondition(Measured().status()));
  config_.backend.cpu_engine = backend::CpuEngine::kInt8;
  config_.backend.isa = "sse9";
  EXPECT_TRUE(absl::IsInvalidArgument(Measured().status()));
  EXPECT_EQ(measurements_, 0);
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
