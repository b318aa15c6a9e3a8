#include "cli/bench/server_process.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

extern char** environ;

namespace simile::cli::bench {
namespace {

constexpr std::string_view kListening = "0A";  // TCP_LISTEN in /proc/net/tcp

struct HostAndPort {
  std::string host;
  int port = 0;
};

// HOST:PORT, [IPv6]:PORT.
std::optional<HostAndPort> Split(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  HostAndPort parts{address.substr(0, colon), 0};
  const char* end = address.data() + address.size();
  const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, parts.port);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

// The bytes of an address without its port, for comparisons.
std::string AddressBytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    std::string bytes(sizeof v4.sin_addr, '\0');
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return bytes;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    std::string bytes(sizeof v6.sin6_addr, '\0');
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return bytes;
  }
  return "";
}

// Whether a host is this machine, which means that one of its interfaces has the host's address.
bool IsHere(const std::string& host) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(list, freeifaddrs);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const std::string bytes = AddressBytes(address->ai_addr);
    if (bytes.size() == 4 && bytes[0] == 127) return true;  // all of 127/8
    for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
      if (!bytes.empty() && bytes == AddressBytes(each->ifa_addr)) return true;
    }
  }
  return false;
}

// Adds the inodes of sockets that listen on the port.
void AddListening(const std::filesystem::path& table, int port,
                  std::unordered_set<std::string>& inodes) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);  // the heading
  const std::string ending = fmt::format(":{:04X}", port);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state == kListening && local.ends_with(ending)) inodes.insert(inode);
  }
}

bool HasSocket(const std::filesystem::path& process,
               const std::unordered_set<std::string>& inodes) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry, error).string();
    if (!target.starts_with("socket:[")) continue;
    if (inodes.contains(target.substr(8, target.size() - 9))) return true;
  }
  return false;
}

// Reads the number of kB after a label in a file such as /proc/meminfo; returns bytes.
std::optional<std::uint64_t> ReadBytes(const std::string& file, std::string_view label) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(label)) continue;
    std::istringstream words(line.substr(label.size()));
    std::uint64_t kilobytes = 0;
    if (words >> kilobytes) return kilobytes << 10;
  }
  return std::nullopt;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

constexpr char kAddressMark[] = "listening on ";

absl::Status NotStarted(std::string_view why) {
  return absl::UnavailableError(fmt::format("the CPU's server was not started: {}", why));
}

// The rest of the line after the mark; empty until the line is complete.
std::string AddressIn(const std::string& printed) {
  const std::size_t mark = printed.find(kAddressMark);
  if (mark == std::string::npos) return "";
  const std::size_t begin = mark + std::strlen(kAddressMark);
  const std::size_t end = printed.find_first_of(" ,;\n", begin);
  return end == std::string::npos ? "" : printed.substr(begin, end - begin);
}

// The environment, without the variables for a server's address, encryption, access, collections
// and settings file.
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

// The texts as exec takes them.
std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<pid_t> FindListeners(const std::string& address, const std::filesystem::path& proc) {
  const std::optional<HostAndPort> parts = Split(address);
  if (!parts || !IsHere(parts->host)) return {};
  std::unordered_set<std::string> inodes;
  AddListening(proc / "net" / "tcp", parts->port, inodes);
  AddListening(proc / "net" / "tcp6", parts->port, inodes);
  std::vector<pid_t> processes;
  if (inodes.empty()) return processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(proc, error)) {
    const std::string name = entry.path().filename().string();
    pid_t process = 0;
    const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), process);
    const bool is_process = failure == std::errc() && stop == name.data() + name.size();
    if (is_process && HasSocket(entry.path(), inodes)) processes.push_back(process);
  }
  std::ranges::sort(processes);
  return processes;
}

std::optional<double> ReadCpuSeconds(const std::vector<pid_t>& processes) {
  double seconds = 0;
  for (const pid_t process : processes) {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
      return std::nullopt;
    }
    seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  if (processes.empty()) return std::nullopt;
  return seconds;
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

std::optional<ResidentMemory> ReadResidentMemory(const std::vector<pid_t>& processes) {
  ResidentMemory memory;
  for (const pid_t process : processes) {
    const std::string file = fmt::format("/proc/{}/status", process);
    const auto bytes = ReadBytes(file, "VmRSS:");
    const auto peak_bytes = ReadBytes(file, "VmHWM:");
    if (!bytes || !peak_bytes) return std::nullopt;
    memory.bytes += *bytes;
    memory.peak_bytes += *peak_bytes;
  }
  if (processes.empty()) return std::nullopt;
  return memory;
}

std::optional<HostMemory> ReadHostMemory() {
  const auto total = ReadBytes("/proc/meminfo", "MemTotal:");
  const auto available = ReadBytes("/proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return HostMemory{*total, *available};
}

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
