#include "cli/doctor/probe_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "cli/json_line.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

// The lines that the child writes: one when a probe begins, one with what it found, one at the end.
constexpr const char* kBegan = "began";
constexpr const char* kDone = "done";

// In the child. Libraries may print and may die: neither is to be seen.
void PrepareChild() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
}

// In the child: examines, and writes a line for each step.
void WriteFindings(const doctor::Options& options, int to) {
  const auto write_line = [to](const Json& json) {
    if (!base::WriteAll(to, JsonLine(json))) _exit(1);
  };
  doctor::ExamineGpu(options, {.began =
                                   [&](std::string_view probe) {
                                     write_line({{kBegan, std::string(probe)}});
                                   },
                               .found =
                                   [&](const doctor::Finding& finding) {
                                     write_line({{"probe", finding.probe},
                                                 {"state", static_cast<int>(finding.state)},
                                                 {"text", finding.text},
                                                 {"fix", finding.fix},
                                                 {"symptom", finding.symptom}});
                                   }});
  write_line({{kDone, true}});
}

// What the child has written so far.
struct ChildReport {
  std::vector<doctor::Finding> findings;
  std::string began;
  bool done = false;

  void Add(const std::string& line) {
    const Json json = Json::parse(line);
    if (json.contains(kDone)) {
      done = true;
    } else if (json.contains(kBegan)) {
      began = json.at(kBegan);
    } else {
      findings.push_back({json.at("probe"), static_cast<doctor::State>(json.at("state").get<int>()),
                          json.at("text"), json.at("fix"), json.at("symptom")});
    }
  }
};

int MillisecondsUntil(SteadyClock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

// Reads the child's lines until it closes its pipe or the time is over.
void ReadReport(int from, SteadyClock::time_point end, ChildReport& report) {
  std::string pending;
  std::array<char, 4'096> block;
  for (;;) {
    pollfd readable{from, POLLIN, 0};
    const int ready = poll(&readable, 1, MillisecondsUntil(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    const ssize_t bytes = read(from, block.data(), block.size());
    if (bytes <= 0) return;
    pending.append(block.data(), static_cast<std::size_t>(bytes));
    for (std::size_t line; (line = pending.find('\n')) != std::string::npos;) {
      report.Add(pending.substr(0, line));
      pending.erase(0, line + 1);
    }
  }
}

// Waits for the child's end. A closed pipe is not yet one: the end may hang in the kernel, too.
// Returns its status; nullopt when it does not end in time, and then kills it.
std::optional<int> AwaitEnd(pid_t child, SteadyClock::time_point end) {
  constexpr std::chrono::milliseconds kPause{5};
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 || SteadyClock::now() >= end) break;
    std::this_thread::sleep_for(kPause);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, WNOHANG);
  return std::nullopt;
}

// "signal 11 (Segmentation fault)"
std::string HowEnded(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

}  // namespace

absl::StatusOr<std::vector<doctor::Finding>> ExamineInChild(const doctor::Options& options,
                                                            std::chrono::seconds limit) {
  const SteadyClock::time_point end = SteadyClock::now() + limit;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(fmt::format("no pipe to a process: {}", std::strerror(errno)));
  }
  base::FileDescriptor from(ends[0]);
  base::FileDescriptor to(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return absl::UnavailableError(fmt::format("no process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    PrepareChild();
    try {
      WriteFindings(options, to.get());
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);  // without destructors, which may hang in a driver
  }
  to.Close();
  ChildReport report;
  ReadReport(from.get(), end, report);
  const std::optional<int> status = AwaitEnd(child, end);
  if (!report.done || !status) {
    doctor::AddUnfinished(report.began,
                          status ? doctor::CrashBy(HowEnded(*status)) : doctor::HangAfter(limit),
                          report.findings);
  }
  return std::move(report.findings);
}

}  // namespace simile::cli
