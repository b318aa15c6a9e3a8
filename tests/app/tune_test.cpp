#include "app/tuning/tune.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/tuning/collection_probe.h"
#include "app/tuning/tuning.h"
#include "app/wiring.h"
#include "data/load/load.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using backend::cpu::TuningValue;
using backend::cpu::TuningValues;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kAnswers = 1'000;

TunedCollection Films() {
  const Limits limits;
  const auto plan = data::PlanDataset(SIMILE_SOURCE_DIR "/examples/films", limits);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto dataset = data::LoadDataset(*plan, limits, {});
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return {"films", std::move(dataset->vectors), dataset->metric};
}

std::unique_ptr<CollectionProbe> FilmsProbe(const Clock& clock) {
  std::vector<TunedCollection> collections;
  collections.push_back(Films());
  auto probe = CollectionProbe::Create(
      std::move(collections), {.engine = backend::cpu::OptionsFor(""), .k = 10, .batch_max = 256},
      clock);
  EXPECT_TRUE(probe.ok()) << probe.status();
  return *std::move(probe);
}

// Every parameter at both ends of its range, and every number of threads up to three.
TEST(CollectionProbeTest, AnswersAreTheSameBitsWithAllNumbers) {
  const RealClock clock;
  const auto probe = FilmsProbe(clock);
  const EngineSetup defaults;
  std::vector<EngineSetup> setups;
  for (unsigned threads = 1; threads <= 3; ++threads) setups.push_back({threads, {}});
  for (const TuningValue& value : TuningValues()) {
    for (const std::size_t number : {value.min, value.max}) {
      setups.push_back({2, {}});
      setups.back().tuning.*value.value = number;
    }
  }
  for (const EngineSetup& setup : setups) {
    const auto compared = probe->CompareAnswers(setup, defaults, kAnswers);
    ASSERT_TRUE(compared.ok()) << compared.status();
    EXPECT_EQ(*compared, kAnswers);
  }
}

TEST(CollectionProbeTest, TimesBothSetupsUntilTheEnd) {
  const RealClock clock;
  const auto probe = FilmsProbe(clock);
  const EngineSetup one{1, {}};
  const EngineSetup other{2, {}};
  const Clock::TimePoint never = Clock::TimePoint::max();
  for (const Workload& workload : {Workload{0, 1, 0}, Workload{0, 64, 0}, Workload{0, 1, 20}}) {
    const TimedWorkload timed = probe->TimeInTurn(one, other, workload, clock.Now(), never);
    EXPECT_EQ(timed.workload, workload);
    EXPECT_GT(timed.before_s, 0);
    EXPECT_GT(timed.after_s, 0);
  }
  const TimedWorkload same = probe->TimeInTurn(one, one, {0, 1, 0}, clock.Now(), never);
  EXPECT_GT(same.before_s, 0);
  EXPECT_EQ(same.before_s, same.after_s);
  const TimedWorkload late = probe->TimeInTurn(one, other, {0, 1, 0}, never, clock.Now());
  EXPECT_EQ(late.before_s, 0);
  EXPECT_EQ(late.after_s, 0);
}

TEST(CollectionProbeTest, MeasuresTheFirstRowsOfWhatIsLarge) {
  const RealClock clock;
  std::vector<TunedCollection> collections;
  collections.push_back(Films());
  collections.push_back(Films());
  const auto probe = CollectionProbe::Create(std::move(collections),
                                             {.engine = backend::cpu::OptionsFor(""),
                                              .k = 10,
                                              .batch_max = 16,
                                              .code_bytes_max = 2'000 * 384},
                                             clock);
  ASSERT_TRUE(probe.ok()) << probe.status();
  ASSERT_EQ((*probe)->shapes().size(), 2U);
  for (const TunedShape& shape : (*probe)->shapes()) {
    EXPECT_EQ(shape.row_count, 1'000U);
    EXPECT_EQ(shape.rows_total, 5'000U);
  }
  EXPECT_TRUE((*probe)->CompareAnswers({1, {}}, {2, {}}, 50).ok());
}

class TuneCollectionsTest : public testing::Test {
 protected:
  TuneCollectionsTest() {
    config_.collections = {{"films", SIMILE_SOURCE_DIR "/examples/films"}};
    config_.tuning_cache = scratch_.path() / "home" / "cpu-tuning.json";
    options_.duration = milliseconds(1'000);
    options_.batch_max = 64;
    options_.output = config_.tuning_cache;
  }

  absl::StatusOr<TuneReport> Tune() {
    return TuneCollections(config_, options_, RealClock(), [](double, const std::string&) {});
  }
  static std::string Text(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const ScratchFolder scratch_;
  Config config_;
  TuneOptions options_;
};

TEST_F(TuneCollectionsTest, WritesWhatTheNextServeStartsWith) {
  const absl::StatusOr<TuneReport> report = Tune();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->written);
  ASSERT_EQ(report->collections.size(), 1U);
  EXPECT_EQ(report->collections[0].rows_total, 5'000U);
  EXPECT_EQ(report->collections[0].row_count, 5'000U);
  EXPECT_FALSE(report->tuning.workloads.empty());
  const TuningInForce known = KnownTuning(config_);
  EXPECT_TRUE(known.cache.ok()) << known.cache;
  EXPECT_EQ(known.tuning, report->in_force.tuning) << Text(options_.output);
  EXPECT_EQ(known.origins, report->in_force.origins);
  EXPECT_EQ(known.threads, report->tuning.threads_after);
  EXPECT_EQ(known.threads_origin.starts_with("tuned "), report->tuning.is_changed());
}

TEST_F(TuneCollectionsTest, ReportsItsProgress) {
  options_.duration = milliseconds(50);
  double last = 0;
  std::string all;
  const auto report =
      TuneCollections(config_, options_, RealClock(), [&](double share, const std::string& what) {
        EXPECT_GE(share, last);
        EXPECT_LE(share, 1);
        last = share;
        all += what + "\n";
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(all, AllOf(HasSubstr("reading films, "), HasSubstr("films, 1 query, "),
                         HasSubstr("films, 64 queries, ")));
}

TEST_F(TuneCollectionsTest, ChoosesNoThreadsWhereTheConfigurationSetsThem) {
  options_.duration = milliseconds(50);
  config_.backend.threads = 1;
  const absl::StatusOr<TuneReport> report = Tune();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->tuning.is_changed());
  EXPECT_EQ(report->tuning.threads_after, 1U);
  EXPECT_EQ(report->in_force.threads_origin, "backend.threads");
}

// What a server starts with where the file holds tuned parameters.
TEST_F(TuneCollectionsTest, ServeUsesTunedThreads) {
  if (KnownTuning(config_).threads < 2) GTEST_SKIP() << "one processor leaves no choice";
  auto measured = MeasureTuning(
      config_, [](const auto&) { return backend::cpu::TuningFindings(); }, RealClock());
  ASSERT_TRUE(measured.ok()) << measured.status();
  measured->tuned = TunedFindings{"2026-11-23", {"films"}, 1, {}};
  ASSERT_TRUE(WriteTuningCache(config_.tuning_cache, *measured).ok());
  config_.port = 0;
  config_.metrics_enabled = false;
  config_.backend.preference = backend::Preference::kCpu;
  const observe::Logger log({LogFormat::kText, LogLevel::kError, nullptr});
  const auto app = App::Create(config_, log);
  ASSERT_TRUE(app.ok()) << app.status();
  EXPECT_THAT((*app)->backend().info.device, HasSubstr(", 1 thread"));
}

TEST_F(TuneCollectionsTest, WritesNothingThatTheFileHolds) {
  options_.duration = milliseconds(1);  // no time to find anything
  absl::StatusOr<TuneReport> report = Tune();
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string before = Text(options_.output);
  // On a machine that was busy the first may have been incomplete, and is completed.
  for (int run = 0; run < 20 && report->written; ++run) report = Tune();
  EXPECT_FALSE(report->written);
  EXPECT_FALSE(before.empty());
}

TEST_F(TuneCollectionsTest, WritesNothingWithoutAnOutput) {
  options_.output.clear();
  EXPECT_TRUE(Tune().ok());
  EXPECT_FALSE(std::filesystem::exists(config_.tuning_cache));
}

TEST_F(TuneCollectionsTest, RefusesWhatItCouldNotWriteBeforeItMeasures) {
  scratch_.Write("precious.txt", "precious");
  options_.output = scratch_.path() / "precious.txt";
  options_.duration = std::chrono::minutes(5);  // not spent
  const absl::StatusOr<TuneReport> report = Tune();
  EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
  EXPECT_EQ(Text(options_.output), "precious");
}

TEST_F(TuneCollectionsTest, NamesTheFolderThatCannotBeRead) {
  config_.collections.push_back({"songs", scratch_.path() / "songs"});
  const absl::Status refused = Tune().status();
  EXPECT_THAT(std::string(refused.message()),
              AllOf(StartsWith("songs="), HasSubstr("does not exist")));
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

TEST(WithThreadsTest, AddsToWhatWasTunedBefore) {
  MeasuredTuning measured{{"Ann's processor", 8, "avx2"}, "2026-11-21", {}, std::nullopt};
  measured.tuned = TunedFindings{"2026-11-22", {"films"}, 2, {}};
  measured.tuned->findings.gather_share = 40;
  measured = WithThreads(measured, 4, {"songs", "films"}, "2026-11-23");
  ASSERT_TRUE(measured.tuned.has_value());
  EXPECT_EQ(measured.tuned->date, "2026-11-23");
  EXPECT_THAT(measured.tuned->collections, ElementsAre("films", "songs"));
  EXPECT_EQ(measured.tuned->threads, 4U);
  EXPECT_EQ(measured.tuned->findings.gather_share, 40U);
}

TEST(WithThreadsTest, KeepsTheThreadsOnlyWhereTheyAreFewer) {
  const MeasuredTuning measured{{"Ann's processor", 8, "avx2"}, "2026-11-21", {}, std::nullopt};
  EXPECT_EQ(WithThreads(measured, 4, {"films"}, "").tuned->threads, 4U);
  EXPECT_FALSE(WithThreads(measured, 8, {"films"}, "").tuned->threads.has_value());
}

}  // namespace
}  // namespace simile::app
