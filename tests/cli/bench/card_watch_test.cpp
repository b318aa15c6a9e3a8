// What `simile bench` reads of the server's card.
#include "cli/bench/card_watch.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// That a machine can be busy without a test that fails.
constexpr milliseconds kLong = std::chrono::minutes(2);
const std::string kManagement = SIMILE_FAKES_DIR "/libfake_nvml.so";

CardReading Reading(double utilization, std::uint64_t used) {
  return {"NVIDIA T4", utilization, used, 1'000};
}

// A state of the fake library's cards for the time of a test.
class CardReaderTest : public testing::Test {
 protected:
  void Describe(const std::string& lines) const {
    const std::string path = (folder_.path() / "card").string();
    std::ofstream(path) << lines;
    setenv("FAKE_NVML_FILE", path.c_str(), 1);
  }
  void TearDown() override { unsetenv("FAKE_NVML_FILE"); }

 private:
  const ScratchFolder folder_;
};

TEST_F(CardReaderTest, ReadsTheCardOfTheServersProcess) {
  Describe(
      "devices=2\nname=NVIDIA T4\nprocesses@0=7\nprocesses@1=8,77\nutilization@0=10\n"
      "utilization@1=61\nmemory_total=1000\n");
  const absl::StatusOr<CardReading> reading = MakeProcessReader({77}, kManagement)();
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->name, "NVIDIA T4");
  EXPECT_EQ(reading->utilization_ratio, 0.61);
  EXPECT_EQ(reading->memory_total_bytes, 1'000U);
}

TEST_F(CardReaderTest, TakesTheOnlyCardWhereItsProcessesAreNotNamed) {
  Describe(
      "devices=1\nname=NVIDIA "
      "T4\nprocesses=\nutilization=61\nmemory_used=500\nmemory_total=1000\n");
  const absl::StatusOr<CardReading> reading = MakeProcessReader({77}, kManagement)();
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->utilization_ratio, 0.61);
  EXPECT_EQ(reading->memory_used_bytes, 500U);
}

TEST_F(CardReaderTest, NamesNoCardOfSeveralWithoutAProcess) {
  Describe("devices=2\nprocesses=5\n");
  EXPECT_THAT(std::string(MakeProcessReader({77}, kManagement)().status().message()),
              HasSubstr("on any of this machine's 2 cards"));
  EXPECT_EQ(MakeProcessReader({}, kManagement)().status().code(), absl::StatusCode::kNotFound);
}

TEST(CardOfMetricsTest, ReadsWhatTheServerExports) {
  v1::GetStatsResponse stats;
  const auto add = [&](const char* name, double value) {
    v1::MetricValue& metric = *stats.add_metrics();
    metric.set_name(name);
    (*metric.mutable_labels())["gpu"] = "1";
    metric.set_number(value);
  };
  add("simile_gpu_utilization_ratio", 0.5);
  add("simile_gpu_device_memory_used_bytes", 2e9);
  add("simile_gpu_temperature_celsius", 60);
  const absl::StatusOr<CardReading> reading = MakeMetricsReader([&] { return stats; })();
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->name, "GPU 1");
  EXPECT_EQ(reading->utilization_ratio, 0.5);
  EXPECT_EQ(reading->memory_used_bytes, 2'000'000'000U);
  EXPECT_EQ(reading->memory_total_bytes, std::nullopt);
  EXPECT_EQ(MakeMetricsReader([] { return v1::GetStatsResponse(); })().status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CardOfEitherTest, KeepsTheOneThatAnswers) {
  int asked_first = 0;
  const CardReader read = ChooseReader(
      [&]() -> absl::StatusOr<CardReading> {
        ++asked_first;
        return absl::NotFoundError("no library");
      },
      [] { return Reading(0.5, 5); });
  EXPECT_TRUE(read().ok());
  EXPECT_TRUE(read().ok());
  EXPECT_EQ(asked_first, 1);
  const CardReader neither = ChooseReader([] { return absl::NotFoundError("no library"); },
                                          [] { return absl::PermissionDeniedError("no metrics"); });
  EXPECT_EQ(neither().status(), absl::PermissionDeniedError("no library; no metrics"));
}

TEST(CardWatchTest, AddsUpTheReadingsOfARunAlone) {
  std::atomic<int> readings{0};
  std::promise<void> two_read;
  CardWatch watch(
      [&] {
        const int number = ++readings;
        if (number == 2) two_read.set_value();
        return Reading(number == 1 ? 0.2 : 0.6, number == 1 ? 700 : 300);
      },
      milliseconds(1), kLong);
  watch.Begin();
  two_read.get_future().wait();
  CardUse use = watch.End();
  EXPECT_EQ(use.name, "NVIDIA T4");
  EXPECT_GE(use.readings, 1U);
  EXPECT_LE(use.utilization_max.value(), 0.6);
  EXPECT_EQ(use.memory_used_bytes_max, 700U);
  EXPECT_EQ(use.memory_total_bytes, 1'000U);
  watch.Begin();
  use = watch.End();
  EXPECT_DOUBLE_EQ(use.utilization_mean.value(), 0.6);
  EXPECT_EQ(use.memory_used_bytes_max, 300U);
}

TEST(CardWatchTest, SaysWhyACardCannotBeRead) {
  CardWatch watch([] { return absl::NotFoundError("no card"); }, milliseconds(1), kLong);
  watch.Begin();
  const CardUse use = watch.End();
  EXPECT_EQ(use.readings, 0U);
  EXPECT_EQ(use.why_not, "no card");
}

// A driver that hangs with its card ends neither the run nor the program.
TEST(CardWatchTest, LeavesAHangingReadingBehind) {
  std::promise<void> end;
  // The thread outlives the test, so it keeps a future of its own.
  const std::shared_future<void> released = end.get_future().share();
  {
    CardWatch watch([released]() -> absl::StatusOr<CardReading> {
      released.wait();
      return Reading(1, 1);
    });
    watch.Begin();
    const CardUse use = watch.End();
    EXPECT_EQ(use.readings, 0U);
    EXPECT_EQ(use.why_not, "its driver does not answer");
  }
  end.set_value();
}

}  // namespace
}  // namespace simile::cli::bench
