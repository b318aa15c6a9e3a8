#include "cli/bench/started_server.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

extern char** environ;

namespace simile::cli::bench {
namespace {

constexpr char kAddressMark[] = "listening on ";

absl::Status NotStarted(std::string_view why) {
  return absl::UnavailableError(fmt::format("the CPU's server was not started: {}", why));
}

// The text behind the mark, to the end of its line; empty until the line is whole.
std::string AddressIn(const std::string& printed) {
  const std::size_t mark = printed.find(kAddressMark);
  if (mark == std::string::npos) return "";
  const std::size_t begin = mark + std::strlen(kAddressMark);
  const std::size_t end = printed.find_first_of(" ,;\n", begin);
  return end == std::string::npos ? "" : printed.substr(begin, end - begin);
}

// The environment, without what says where a server listens, who may call and what it serves: also
// not the name of a file of settings.
std::vector<std::string> OtherVariables() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("SIMILE_SERVER_") || text.starts_with("SIMILE_COLLECTION") ||
        text.starts_with("SIMILE_CONFIG=")) {
      continue;
    }
    variables.emplace_back(text);
  }
  return variables;
}

// As exec takes them.
std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StartedServer>> StartedServer::Start(const std::string& collection,
                                                                    const std::string& folder) {
  File printed(std::tmpfile());
  if (printed == nullptr) return NotStarted(std::strerror(errno));
  std::vector<std::string> words = {"simile", "serve", "--collection",
                                    fmt::format("{}={}", collection, folder)};
  for (const char* const word : {"--backend", "cpu", "--listen", "127.0.0.1", "--port", "0",
                                 "--no-metrics", "--log-format", "text", "--die-with-parent"}) {
    words.emplace_back(word);
  }
  std::vector<std::string> variables = OtherVariables();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(printed.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(printed.get()), STDERR_FILENO);
  pid_t process = -1;
  const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                PointersTo(words).data(), PointersTo(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return NotStarted(std::strerror(error));
  std::unique_ptr<StartedServer> server(new StartedServer(process, std::move(printed)));
  if (absl::Status status = server->AwaitAddress(folder); !status.ok()) return status;
  return server;
}

StartedServer::~StartedServer() {
  if (ended_) return;
  kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
}

std::string StartedServer::Printed() const {
  std::string text;
  std::array<char, 4'096> block;
  for (;;) {
    const ssize_t bytes =
        pread(fileno(printed_.get()), block.data(), block.size(), static_cast<off_t>(text.size()));
    if (bytes <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(bytes));
  }
}

absl::Status StartedServer::AwaitAddress(const std::string& folder) {
  constexpr std::chrono::milliseconds kPause{20};
  constexpr std::chrono::minutes kLoadMax{30};
  const auto end = std::chrono::steady_clock::now() + kLoadMax;
  while (std::chrono::steady_clock::now() < end) {
    ended_ = waitpid(process_, nullptr, WNOHANG) == process_;
    address_ = AddressIn(Printed());
    if (!address_.empty()) return absl::OkStatus();
    if (ended_) return NotStarted(Printed());
    std::this_thread::sleep_for(kPause);
  }
  return NotStarted(fmt::format(
      "it has not loaded {} within {} minutes; start one yourself, and give its address: "
      "--compare HOST:PORT",
      folder, kLoadMax.count()));
}

}  // namespace simile::cli::bench
