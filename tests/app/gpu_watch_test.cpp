#include "app/gpu/gpu_watch.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/gpu/fault_journal.h"
#include "base/await_true.h"
#include "engine/fake_clock.h"
#include "files/scratch_folder.h"
#include "observe/exposed.h"
#include "observe/metric_samples.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;
using Cause = FallbackCause;

class StoppedClock final : public Clock {
 public:
  TimePoint Now() const override { return {}; }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  }
};

class GpuWatchTest : public testing::Test {
 protected:
  GpuWatchTest() { config_.gpu_fault_journal = scratch_.path() / "faults.json"; }

  static bool RestartWanted(const GpuWatch& watch) {
    pollfd watched{watch.restart_fd(), POLLIN, 0};
    return poll(&watched, 1, 0) == 1;
  }
  std::ptrdiff_t LogLines() const {
    const std::string text = log_text_.str();
    return std::count(text.begin(), text.end(), '\n');
  }

  const ScratchFolder scratch_;
  Config config_;
  const StoppedClock clock_;
  std::ostringstream log_text_;
  const observe::Logger log_{{observe::LogFormat::kJson, observe::LogLevel::kInfo, &log_text_}};
  observe::Metrics metrics_{observe::BuildInfo{}};
};

TEST_F(GpuWatchTest, CountsAndLogsABatchThatRanOnTheCpu) {
  GpuWatch watch(config_, clock_, log_, metrics_);
  metrics_.SetBackendActive("gpu");
  watch.On({Cause::kCallFailed, 1, "cudaErrorInvalidValue at cudaMemcpyAsync"});
  EXPECT_THAT(observe::Exposed(metrics_),
              HasSubstr("simile_fallback_total{reason=\"call_failed\"} 1\n"));
  EXPECT_THAT(observe::Exposed(metrics_), HasSubstr("simile_device_errors_total{code=\"1\"} 1\n"));
  EXPECT_THAT(observe::Exposed(metrics_), HasSubstr("simile_gpu_lost_timestamp_seconds 0\n"));
  EXPECT_THAT(observe::Exposed(metrics_), HasSubstr("simile_backend_active{backend=\"gpu\"} 1\n"));
  EXPECT_THAT(log_text_.str(),
              HasSubstr("\"message\":\"a call to the GPU failed; the CPU did the work\",\"reason\":"
                        "\"cudaErrorInvalidValue at cudaMemcpyAsync\""));
  EXPECT_FALSE(RestartWanted(watch));
  EXPECT_TRUE(watch.EarlierFaults().empty());
}

TEST_F(GpuWatchTest, LogsARepeatedEventAtPowersOfTwo) {
  GpuWatch watch(config_, clock_, log_, metrics_);
  for (int i = 0; i < 1'000; ++i) watch.On({Cause::kOutOfMemory, {}, "full"});
  EXPECT_EQ(LogLines(), 10);  // 1, 2, 4, ... 512
  watch.On({Cause::kDoesNotFit, {}, "full"});
  EXPECT_EQ(LogLines(), 11);
  EXPECT_THAT(observe::Exposed(metrics_),
              HasSubstr("simile_fallback_total{reason=\"out_of_memory\"} 1000\n"));
}

TEST_F(GpuWatchTest, WritesALostDeviceIntoTheJournal) {
  {
    GpuWatch watch(config_, clock_, log_, metrics_);
    metrics_.SetBackendActive("gpu");
    watch.On({Cause::kDeviceLost, 700, "cudaErrorIllegalAddress"});
    EXPECT_FALSE(RestartWanted(watch)) << "failover is the default";
  }
  EXPECT_THAT(observe::Exposed(metrics_), HasSubstr("simile_backend_active{backend=\"cpu\"} 1\n"));
  EXPECT_THAT(observe::Exposed(metrics_), HasSubstr("simile_backend_active{backend=\"gpu\"} 0\n"));
  EXPECT_THAT(observe::Exposed(metrics_),
              HasSubstr("simile_gpu_lost_timestamp_seconds 1700000000\n"));
  const GpuWatch next(config_, clock_, log_, metrics_);
  EXPECT_THAT(next.EarlierFaults(),
              testing::ElementsAre(backend::GpuFault{clock_.WallNow(), "cudaErrorIllegalAddress"}));
}

TEST_F(GpuWatchTest, RequestsARestartWhenConfiguredTo) {
  config_.on_gpu_fault = OnGpuFault::kRestart;
  GpuWatch watch(config_, clock_, log_, metrics_);
  watch.On({Cause::kOutOfMemory, {}, "full"});
  EXPECT_FALSE(RestartWanted(watch));
  watch.On({Cause::kDeviceLost, {}, "hung"});
  EXPECT_TRUE(RestartWanted(watch));
}

TEST_F(GpuWatchTest, WorksWithoutAJournalWhenTheFileIsSomethingElse) {
  scratch_.Write("faults.json", "something else");
  GpuWatch watch(config_, clock_, log_, metrics_);
  EXPECT_TRUE(watch.EarlierFaults().empty());
  EXPECT_THAT(log_text_.str(), HasSubstr("the journal of GPU faults is not used"));
  watch.On({Cause::kDeviceLost, {}, "hung"});
  EXPECT_THAT(log_text_.str(), HasSubstr("the journal of GPU faults is not written"));
}

TEST_F(GpuWatchTest, KeepsNoJournalWithoutAPath) {
  config_.gpu_fault_journal.clear();
  GpuWatch watch(config_, clock_, log_, metrics_);
  watch.On({Cause::kDeviceLost, {}, "hung"});
  EXPECT_EQ(LogLines(), 1);
  EXPECT_TRUE(watch.EarlierFaults().empty());
}

using observe::ScrapedMetric;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

// By the name, and the label besides `gpu`: "simile_gpu_throttled hw_slowdown".
std::map<std::string, double> ByName(const std::vector<ScrapedMetric>& metrics) {
  std::map<std::string, double> values;
  for (const ScrapedMetric& metric : metrics) {
    EXPECT_THAT(metric.labels, Contains(Pair("gpu", "0")));
    std::string name = metric.name;
    if (metric.labels.size() > 1) name.append(" ").append(metric.labels[1].second);
    EXPECT_TRUE(values.emplace(name, metric.value).second) << name;
  }
  return values;
}

// The fake library (tests/backend/fake_nvml.c), with a card that the test describes.
class GpuSensorsTest : public testing::Test {
 protected:
  GpuSensorsTest() { setenv("FAKE_NVML_FILE", (scratch_.path() / "nvml").c_str(), 1); }

  // The library reads the file while a test writes it.
  void Describe(const std::string& lines) const {
    scratch_.Write("next", lines);
    std::filesystem::rename(scratch_.path() / "next", scratch_.path() / "nvml");
  }
  // A reading that is made waits for the library as long as that takes.
  GpuSensors::Options Patient() const {
    GpuSensors::Options options;
    options.library = SIMILE_FAKES_DIR "/libfake_nvml.so";
    options.scrape_wait = std::chrono::minutes(1);
    return options;
  }
  // What is read once the library is open.
  static std::map<std::string, double> Await(GpuSensors& sensors, const std::string& name) {
    std::map<std::string, double> values;
    EXPECT_TRUE(base::AwaitTrue([&] {
      values = ByName(sensors.Metrics());
      return values.contains(name);
    }));
    return values;
  }

  const ScratchFolder scratch_;
  engine::FakeClock clock_;
  std::ostringstream log_text_;
  const observe::Logger log_{{observe::LogFormat::kJson, observe::LogLevel::kInfo, &log_text_}};
};

TEST_F(GpuSensorsTest, ReadsTheCardAtAScrape) {
  Describe(
      "memory_used=1024\nmemory_total=4096\nutilization=37\ntemperature=71\npower=65500\n"
      "throttle=0x48\necc=2\n");
  GpuSensors sensors(Patient(), clock_, log_);
  const auto values = Await(sensors, "simile_gpu_temperature_celsius");
  EXPECT_EQ(values.at("simile_gpu_temperature_celsius"), 71);
  EXPECT_DOUBLE_EQ(values.at("simile_gpu_utilization_ratio"), 0.37);
  EXPECT_EQ(values.at("simile_gpu_device_memory_used_bytes"), 1024);
  EXPECT_EQ(values.at("simile_gpu_device_memory_total_bytes"), 4096);
  EXPECT_EQ(values.at("simile_gpu_power_watts"), 65.5);
  EXPECT_EQ(values.at("simile_gpu_ecc_uncorrected_errors"), 2);
  EXPECT_EQ(values.at("simile_gpu_throttled hw_thermal_slowdown"), 1);
  EXPECT_EQ(values.at("simile_gpu_throttled hw_slowdown"), 1);
  EXPECT_EQ(values.at("simile_gpu_throttled sw_power_cap"), 0);
}

TEST_F(GpuSensorsTest, ReadsAnewOnlyAfterTheRefreshInterval) {
  Describe("temperature=50\n");
  GpuSensors sensors(Patient(), clock_, log_);
  Await(sensors, "simile_gpu_temperature_celsius");
  Describe("temperature=90\n");
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(ByName(sensors.Metrics()).at("simile_gpu_temperature_celsius"), 50);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(ByName(sensors.Metrics()).at("simile_gpu_temperature_celsius"), 90);
}

TEST_F(GpuSensorsTest, LeavesOutWhatTheCardCannotSay) {
  Describe("temperature=50\npower=\necc=\nthrottle=\n");
  GpuSensors sensors(Patient(), clock_, log_);
  const auto values = Await(sensors, "simile_gpu_temperature_celsius");
  EXPECT_THAT(values, Not(Contains(Key("simile_gpu_power_watts"))));
  EXPECT_THAT(values, Not(Contains(Key("simile_gpu_ecc_uncorrected_errors"))));
  EXPECT_THAT(values, Not(Contains(Key(HasSubstr("simile_gpu_throttled")))));
}

TEST_F(GpuSensorsTest, IsEmptyWithoutTheLibrary) {
  GpuSensors::Options options = Patient();
  options.library = "libnvidia-ml-that-is-not-here.so.1";
  GpuSensors sensors(options, clock_, log_);
  EXPECT_THAT(sensors.Metrics(), IsEmpty());
}

TEST_F(GpuSensorsTest, IsEmptyWhenTheLibraryCannotStart) {
  Describe("init=18\n");
  GpuSensors sensors(Patient(), clock_, log_);
  EXPECT_THAT(sensors.Metrics(), IsEmpty());
}

TEST_F(GpuSensorsTest, ShowsNothingOfALostCardButItsErrors) {
  GpuSensors sensors(Patient(), clock_, log_);
  Await(sensors, "simile_gpu_temperature_celsius");
  Await(sensors, "simile_gpu_xid_errors_total 79");
  Describe("read=15\n");
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(ByName(sensors.Metrics()), AllOf(SizeIs(20), Each(Key(HasSubstr("_xid_")))));
}

// A scrape does not wait for a library that hangs with its card, and neither does the end.
TEST_F(GpuSensorsTest, GoesOnWithoutALibraryThatHangs) {
  Describe("temperature=50\n");
  GpuSensors::Options options = Patient();
  options.scrape_wait = milliseconds(1);
  GpuSensors sensors(options, clock_, log_);
  ASSERT_TRUE(base::AwaitTrue([&] {
    clock_.Advance(milliseconds(1));
    return ByName(sensors.Metrics()).contains("simile_gpu_temperature_celsius");
  }));
  Describe("temperature=90\nhandle=hang\n");
  clock_.Advance(std::chrono::seconds(4));
  // The last reading, while it is not too old.
  EXPECT_EQ(ByName(sensors.Metrics()).at("simile_gpu_temperature_celsius"), 50);
  clock_.Advance(std::chrono::seconds(20));
  EXPECT_THAT(ByName(sensors.Metrics()), Not(Contains(Key("simile_gpu_temperature_celsius"))));
}

TEST_F(GpuSensorsTest, CountsAndLogsXids) {
  Describe("xids=13\n");
  {
    GpuSensors sensors(Patient(), clock_, log_);
    auto values = Await(sensors, "simile_gpu_xid_errors_total 79");
    // One that was there before the server is not its own.
    EXPECT_EQ(values.at("simile_gpu_xid_errors_total 13"), 0);
    Describe("xids=13,79,79,12345\n");
    while (values.at("simile_gpu_xid_errors_total other") == 0) {
      values = ByName(sensors.Metrics());
      std::this_thread::yield();
    }
    EXPECT_EQ(values.at("simile_gpu_xid_errors_total 79"), 2);
    EXPECT_EQ(values.at("simile_gpu_xid_errors_total other"), 1);
    EXPECT_EQ(values.at("simile_gpu_xid_errors_total 13"), 0);
  }
  EXPECT_THAT(log_text_.str(), HasSubstr("\"message\":\"the driver reports an error of the GPU\""));
  EXPECT_THAT(log_text_.str(), HasSubstr("\"xid\":12345"));
}

TEST_F(GpuSensorsTest, ReadsTheCardAtAPlaceOnTheBus) {
  Describe("devices=2\n");
  GpuSensors::Options options = Patient();
  options.bus_id = "0000:02:00.0";
  GpuSensors here(options, clock_, log_);
  Await(here, "simile_gpu_temperature_celsius");
  options.bus_id = "0000:07:00.0";
  GpuSensors elsewhere(options, clock_, log_);
  EXPECT_THAT(elsewhere.Metrics(), IsEmpty());
}

}  // namespace
}  // namespace simile::app
