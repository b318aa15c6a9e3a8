#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

namespace simile::cli::bench {

// Processes of this machine that listen on the port of an address: one, or several that share it.
// Empty when the address is another machine's, nothing listens, or their owner is another user,
// whose descriptors the kernel does not show.
//   address  HOST:PORT
//   proc     the kernel's file system of processes
std::vector<pid_t> FindListeners(const std::string& address,
                                 const std::filesystem::path& proc = "/proc");

// CPU time that the processes have used since they started, all threads, user and system. Nothing
// when one of them has ended.
std::optional<double> ReadCpuSeconds(const std::vector<pid_t>& processes);
// Of this process.
double OwnCpuSeconds();

// Resident bytes now and the most since start, summed over processes; nothing when unknown.
struct ResidentMemory {
  std::uint64_t bytes = 0;
  std::uint64_t peak_bytes = 0;
};
std::optional<ResidentMemory> ReadResidentMemory(const std::vector<pid_t>& processes);

// The machine's memory, bytes.
struct HostMemory {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};
std::optional<HostMemory> ReadHostMemory();

// This program as a server of one folder on a free port of the loopback, with the CPU as its
// backend. It takes the settings of the environment, but those of the address, of encryption, of
// access and of collections, and no file of settings. The destructor stops it with SIGTERM and
// waits for its end.
class StartedServer {
 public:
  // Starts it and waits until it has loaded the folder and listens.
  //   collection  the name of the folder's rows on it
  // Errors: kUnavailable when no process can be started or the server ends first, with its words;
  // or
  //         when it has not loaded the folder within half an hour.
  static absl::StatusOr<std::unique_ptr<StartedServer>> Start(const std::string& collection,
                                                              const std::string& folder);
  ~StartedServer();
  StartedServer(const StartedServer&) = delete;
  StartedServer& operator=(const StartedServer&) = delete;

  const std::string& address() const { return address_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  StartedServer(pid_t process, File printed) : process_(process), printed_(std::move(printed)) {}

  // Waits until its address is printed, for half an hour at most.
  absl::Status AwaitAddress(const std::string& folder);
  std::string Printed() const;

  const pid_t process_;
  bool ended_ = false;
  const File printed_;  // a file without a name, which no output can fill as it would a pipe
  std::string address_;
};

}  // namespace simile::cli::bench
