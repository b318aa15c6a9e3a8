#include "app/tune.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/collection_probe.h"
#include "app/tuning.h"
#include "app/wiring.h"
#include "data/load.h"
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
  const EngineSetup one;
  EngineSetup other;
  other.tuning.scan_rows_max = 16'384;
  for (const Workload& workload : {Workload{0, 1, 0}, Workload{0, 64, 0}, Workload{0, 1, 20}}) {
    const auto pairs = probe->TimeInTurn(one, other, workload, 3, Clock::TimePoint::max());
    ASSERT_EQ(pairs.size(), 3U);
    for (const backend::cpu::TimePair& pair : pairs) {
      EXPECT_GT(pair.first_s, 0);
      EXPECT_GT(pair.second_s, 0);
    }
  }
  EXPECT_TRUE(probe->TimeInTurn(one, other, {0, 1, 0}, 3, clock.Now()).empty());
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
    EXPECT_EQ(shape.code_bytes, 1'024U * 384U);
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
  const TuningInForce known = KnownTuning(config_);
  EXPECT_TRUE(known.cache.ok()) << known.cache;
  EXPECT_EQ(known.tuning, report->tuning.after.tuning) << known.origins[0] << "\n"
                                                       << Text(options_.output);
  EXPECT_EQ(known.threads, report->tuning.after.threads);
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TunedParameter& parameter = report->tuning.parameters[i + 1];
    EXPECT_EQ(parameter.value, &TuningValues()[i]);
    EXPECT_EQ(known.origins[i].starts_with("tuned "), parameter.is_changed()) << known.origins[i];
  }
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

BetterTuning Changed(const std::string& name, std::size_t after) {
  BetterTuning tuning;
  tuning.after.threads = 4;
  for (const TuningValue& value : TuningValues()) {
    TunedParameter parameter;
    parameter.value = &value;
    parameter.after = 7;
    parameter.conclusion = TuneConclusion::kNoneBetter;
    if (name == value.name) {
      parameter.after = after;
      parameter.conclusion = TuneConclusion::kChanged;
    }
    tuning.parameters.push_back(std::move(parameter));
  }
  return tuning;
}

TEST(WithTunedTest, AddsToWhatWasTunedBefore) {
  MeasuredTuning measured{{"Ann's processor", 4, "avx2"}, "2026-11-21", {}, std::nullopt};
  EXPECT_FALSE(WithTuned(measured, Changed("", 0), {"films"}, "2026-11-23").tuned.has_value());
  measured = WithTuned(measured, Changed("gather_share", 7), {"films"}, "2026-11-23");
  measured = WithTuned(measured, Changed("block_bytes", 9), {"songs", "films"}, "2026-11-24");
  ASSERT_TRUE(measured.tuned.has_value());
  EXPECT_EQ(measured.tuned->date, "2026-11-24");
  EXPECT_THAT(measured.tuned->collections, ElementsAre("films", "songs"));
  EXPECT_EQ(measured.tuned->findings.gather_share, 7U);
  EXPECT_EQ(measured.tuned->findings.block_bytes, 9U);
  EXPECT_FALSE(measured.tuned->findings.scan_rows_max.has_value());
  EXPECT_FALSE(measured.tuned->threads.has_value());
}

TEST(WithTunedTest, KeepsTheThreadsWhereTheyAreFewer) {
  const MeasuredTuning measured{{"Ann's processor", 8, "avx2"}, "2026-11-21", {}, std::nullopt};
  const MeasuredTuning tuned = WithTuned(measured, Changed("block_bytes", 9), {"films"}, "");
  EXPECT_EQ(tuned.tuned->threads, 4U);
}

// Tuned with one number of threads, and not in force with the present one.
TEST(WithTunedTest, DropsNumbersThatAreNotInForce) {
  MeasuredTuning measured{{"Ann's processor", 4, "avx2"}, "2026-11-21", {}, std::nullopt};
  measured.tuned = TunedFindings{"2026-11-22", {"films"}, 1, {}};
  measured.tuned->findings.gather_share = 40;
  measured = WithTuned(measured, Changed("block_bytes", 9), {"films"}, "2026-11-23");
  EXPECT_FALSE(measured.tuned->findings.gather_share.has_value());
  EXPECT_FALSE(measured.tuned->threads.has_value());
}

}  // namespace
}  // namespace simile::app
