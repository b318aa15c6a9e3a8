#include "cli/live_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

// Reads the server's output until it listens or ends.
bool WaitUntilListening(int output, std::string& printed) {
  std::array<char, 4096> buffer{};
  while (printed.find("listening on") == std::string::npos) {
    const ssize_t count = read(output, buffer.data(), buffer.size());
    if (count <= 0) return false;
    printed.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

LiveServer::LiveServer(const std::string& folder, const std::string& data_root) {
  std::vector<std::string> texts{
      SIMILE_PROGRAM, "serve",   "--collection",    "films=" + folder,
      "--data-root",  data_root, "--allow-changes", "--no-metrics",
      "--port",       "0",       "--port-file",     scratch_.path() / "port"};
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  // Default tuning: every run chooses the same strategies, and start-up measures nothing.
  std::string tuning = "SIMILE_BACKEND_TUNING=defaults";
  std::array<char*, 2> environment{tuning.data(), nullptr};

  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(pipe(pipe_ends.data()), 0);
  process_ = fork();
  if (process_ == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    execve(SIMILE_PROGRAM, argv.data(), environment.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  output_ = pipe_ends[0];

  std::string printed;
  EXPECT_TRUE(WaitUntilListening(output_, printed)) << printed;
  std::string port;
  std::ifstream(scratch_.path() / "port") >> port;
  address_ = "127.0.0.1:" + port;
}

LiveServer::~LiveServer() {
  kill(process_, SIGTERM);
  int status = 0;
  waitpid(process_, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  close(output_);
}

}  // namespace simile::cli
