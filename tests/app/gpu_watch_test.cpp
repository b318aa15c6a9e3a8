#include "app/gpu_watch.h"

#include <poll.h>

#include <algorithm>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/fault_journal.h"
#include "files/scratch_folder.h"
#include "observe/exposed.h"

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

}  // namespace
}  // namespace simile::app
