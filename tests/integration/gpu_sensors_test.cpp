#include <chrono>
#include <csignal>
#include <string>
#include <thread>
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
  static ServerProcess::Circumstances On(const GpuMachine& machine) {
    ServerProcess::Circumstances circumstances;
    circumstances.program = machine.program();
    circumstances.variables = machine.variables();
    return circumstances;
  }
  static std::vector<std::string> Serve(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "--collection", std::string("films=") + kFilmsFolder, "--port", "0", "--metrics-port", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // The port after "metrics on 127.0.0.1:".
  static std::uint16_t MetricsPort(ServerProcess& server) {
    if (server.AwaitListening().empty()) return 0;
    const std::string before = "metrics on 127.0.0.1:";
    server.AwaitOutput(before);
    server.AwaitOutput("\n");
    const std::size_t place = server.output().find(before);
    return static_cast<std::uint16_t>(std::stoi(server.output().substr(place + before.size())));
  }
  // Scrapes until the metric has this value: a reading is up to a second old.
  static bool AwaitValue(std::uint16_t port, const std::string& name, double value) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (MetricValue(ScrapeMetrics(port), name) != value) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(GpuSensorsProgramTest, FollowTheCardWhileTheServerRuns) {
  const GpuMachine machine("working");
  machine.DescribeCard("temperature=50\n");
  ServerProcess server(Serve(), On(machine));
  const std::uint16_t port = MetricsPort(server);
  ASSERT_NE(port, 0) << server.output();
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_temperature_celsius{gpu=\"0\"}", 50));
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_xid_errors_total{gpu=\"0\",xid=\"79\"}", 0));
  machine.DescribeCard("temperature=91\nthrottle=0x40\nxids=79\n");
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_temperature_celsius{gpu=\"0\"}", 91));
  EXPECT_TRUE(
      AwaitValue(port, "simile_gpu_throttled{gpu=\"0\",reason=\"hw_thermal_slowdown\"}", 1));
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_xid_errors_total{gpu=\"0\",xid=\"79\"}", 1));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_THAT(server.output(), HasSubstr("the driver reports an error of the GPU"));
}

// A card that hangs its driver's library holds up neither scrapes, answers nor the end.
TEST_F(GpuSensorsProgramTest, OfACardThatHangsDelayNothing) {
  const GpuMachine machine("working");
  machine.DescribeCard("temperature=50\n");
  ServerProcess server(Serve(), On(machine));
  const std::uint16_t port = MetricsPort(server);
  ASSERT_NE(port, 0) << server.output();
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_temperature_celsius{gpu=\"0\"}", 50));
  machine.DescribeCard("handle=hang\n");
  // A reading is shown for five seconds.
  EXPECT_TRUE(AwaitValue(port, "simile_gpu_temperature_celsius{gpu=\"0\"}", -1));
  EXPECT_THAT(ScrapeMetrics(port), HasSubstr("simile_rows{collection=\"films\"} 5000\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

TEST_F(GpuSensorsProgramTest, AreNotReadForTheCpu) {
  const GpuMachine machine("working");
  machine.DescribeCard("init=hang\n");
  ServerProcess server(Serve({"--backend", "cpu"}), On(machine));
  const std::uint16_t port = MetricsPort(server);
  ASSERT_NE(port, 0) << server.output();
  EXPECT_THAT(ScrapeMetrics(port), Not(HasSubstr("simile_gpu_temperature_celsius")));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
}

}  // namespace
}  // namespace simile::integration
