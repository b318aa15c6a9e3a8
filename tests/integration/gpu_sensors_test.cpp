#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/gpu_machine.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The program on a machine whose management library is the fake one.
class GpuSensorsProgramTest : public testing::Test {
 protected:
  void Serve(const std::string& card, const std::vector<std::string>& more = {}) {
    machine_.DescribeCard(card);
    std::vector<std::string> arguments = {
        "--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ServerProcess::Circumstances circumstances;
    circumstances.program = machine_.program();
    circumstances.variables = machine_.variables();
    server_.emplace(arguments, circumstances);
    ASSERT_NE(server_->AwaitListening(), "") << server_->output();
  }
  std::string Scrape() const { return ScrapeMetrics(server_->MetricsPort()); }
  // Scrapes until the metric has this value: a reading is up to a second old.
  void Await(const std::string& name, double value) const {
    ASSERT_TRUE(AwaitMetric(server_->MetricsPort(), name, value));
  }
  void Stop() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->AwaitExit(), 0);
  }

  const GpuMachine machine_{"working"};
  std::optional<ServerProcess> server_;
};

TEST_F(GpuSensorsProgramTest, FollowTheCardWhileTheServerRuns) {
  ASSERT_NO_FATAL_FAILURE(Serve("temperature=50\n"));
  Await("simile_gpu_temperature_celsius{gpu=\"0\"}", 50);
  Await("simile_gpu_xid_errors_total{gpu=\"0\",xid=\"79\"}", 0);
  machine_.DescribeCard("temperature=91\nthrottle=0x40\nxids=79\n");
  Await("simile_gpu_temperature_celsius{gpu=\"0\"}", 91);
  Await("simile_gpu_throttled{gpu=\"0\",reason=\"hw_thermal_slowdown\"}", 1);
  Await("simile_gpu_xid_errors_total{gpu=\"0\",xid=\"79\"}", 1);
  Stop();
  EXPECT_THAT(server_->output(), HasSubstr("the driver reports an error of the GPU"));
}

// A card that hangs its driver's library holds up neither scrapes, answers nor the end.
TEST_F(GpuSensorsProgramTest, OfACardThatHangsDelayNothing) {
  ASSERT_NO_FATAL_FAILURE(Serve("temperature=50\n"));
  Await("simile_gpu_temperature_celsius{gpu=\"0\"}", 50);
  machine_.DescribeCard("handle=hang\n");
  // A reading is shown for five seconds.
  Await("simile_gpu_temperature_celsius{gpu=\"0\"}", -1);
  EXPECT_THAT(Scrape(), HasSubstr("simile_rows{collection=\"films\"} 5000\n"));
  Stop();
}

TEST_F(GpuSensorsProgramTest, AreNotReadForTheCpu) {
  ASSERT_NO_FATAL_FAILURE(Serve("init=hang\n", {"--backend", "cpu"}));
  EXPECT_THAT(Scrape(), Not(HasSubstr("simile_gpu_temperature_celsius")));
  Stop();
}

}  // namespace
}  // namespace simile::integration
