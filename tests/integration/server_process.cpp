#include "integration/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "base/signal_process.h"

namespace simile::integration {
namespace {

// In the child: puts a standard output in place that takes nothing.
void Redirect(ServerProcess::Output output) {
  if (output == ServerProcess::Output::kFullDevice) {
    dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  }
  int ends[2];
  if (output == ServerProcess::Output::kBrokenPipe && pipe2(ends, O_CLOEXEC) == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
  }
}

// Whether a NAME=VALUE of this process is for the program under test: what any program needs, and
// what tests and sanitizers set. A server tells of variables of other services that the environment
// of a person who runs the tests may have.
bool IsForTheProgram(std::string_view variable) {
  constexpr std::string_view kBeginnings[] = {
      "PATH=", "HOME=", "TMPDIR=",   "TERM=", "LANG=",   "TZ=",   "LC_",   "LD_",   "XDG_",
      "FAKE_", "HOLD_", "EMULATED_", "TEST_", "INJECT_", "ASAN_", "LSAN_", "TSAN_", "UBSAN_"};
  return std::ranges::any_of(
      kBeginnings, [&](std::string_view beginning) { return variable.starts_with(beginning); });
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments,
                             const Circumstances& circumstances) {
  std::vector<std::string> words = {circumstances.program, circumstances.command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The same strategies in every run; measures nothing and writes nothing to the home folder.
  std::vector<std::string> settings = circumstances.variables;
  settings.emplace_back("SIMILE_BACKEND_TUNING=defaults");  // unless `variables` sets it
  std::vector<char*> variables;
  for (std::string& setting : settings) variables.push_back(setting.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (IsForTheProgram(*variable)) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  from_ = base::FileDescriptor(ends[0]);
  const base::FileDescriptor to(ends[1]);
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ > 0) return;
  // In the child: only calls that are safe after fork.
  dup2(to.get(), STDOUT_FILENO);
  dup2(to.get(), STDERR_FILENO);
  Redirect(circumstances.standard_output);
  for (const int stream : circumstances.closed_streams) close(stream);
  if (circumstances.descriptors) {
    const rlimit descriptors{*circumstances.descriptors, *circumstances.descriptors};
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  execve(argv[0], argv.data(), variables.data());
  _exit(127);
}

ServerProcess::~ServerProcess() {
  if (exit_) return;
  Signal(SIGKILL);
  AwaitExit();
}

bool ServerProcess::ReadMore() {
  char buffer[1024];
  const ssize_t got = read(from_.get(), buffer, sizeof buffer);
  if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

std::string ServerProcess::AwaitListening() {
  do {
    // In the first lines, and in a log of JSON.
    for (const std::string& mark :
         {std::string("listening on "), std::string(R"("message":"listening","address":")")}) {
      const std::size_t place = output_.find(mark);
      if (place == std::string::npos) continue;
      const std::size_t begin = place + mark.size();
      const std::size_t end = output_.find_first_of(",\"\n", begin);
      if (end != std::string::npos) return output_.substr(begin, end - begin);
    }
  } while (ReadMore());
  return "";
}

std::uint16_t ServerProcess::MetricsPort() const {
  const std::string mark = "metrics on 127.0.0.1:";
  return static_cast<std::uint16_t>(std::stoi(output_.substr(output_.find(mark) + mark.size())));
}

bool ServerProcess::HasEnded() { return Reap(WNOHANG); }

bool ServerProcess::Reap(int options) {
  if (exit_) return true;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, options);
  if (ended < 0) std::abort();
  if (ended == pid_) exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_.has_value();
}

bool ServerProcess::AwaitOutput(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!ReadMore()) return false;
  }
  return true;
}

bool ServerProcess::AwaitMore(std::chrono::milliseconds wait) {
  pollfd from{from_.get(), POLLIN, 0};
  return poll(&from, 1, static_cast<int>(wait.count())) == 1 && ReadMore();
}

void ServerProcess::Signal(int signal) const { EXPECT_TRUE(base::SignalProcess(pid_, signal)); }

int ServerProcess::AwaitExit() {
  while (ReadMore()) {
  }
  Reap(0);
  return *exit_;
}

std::uint16_t ParsePort(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

}  // namespace simile::integration
