#include "cli/live_server.h"

#include <csignal>

#include <gtest/gtest.h>

namespace simile::cli {

LiveServer::LiveServer(const std::string& folder, const std::string& data_root)
    : process_({"--collection", "films=" + folder, "--data-root", data_root, "--allow-changes",
                "--allow-admin", "--no-metrics", "--log-level", "error", "--port", "0"}),
      address_(process_.AwaitListening()) {
  EXPECT_NE(address_, "") << process_.output();
}

LiveServer::~LiveServer() {
  process_.Signal(SIGTERM);
  EXPECT_EQ(process_.AwaitExit(), 0) << process_.output();
}

ProgramRun LiveServer::Run(const std::vector<std::string>& arguments,
                           const std::string& input) const {
  return RunProgram(arguments, input, {"SIMILE_SERVER=" + address_});
}

}  // namespace simile::cli
