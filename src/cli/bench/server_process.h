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

// The processes of this machine that listen on the port of an address; several if they share the
// port. Empty if the address is another machine's or nothing listens. Also empty if the processes
// belong to another user, because the kernel hides their descriptors.
//   address  HOST:PORT
//   proc     the kernel's process file system
std::vector<pid_t> FindListeners(const std::string& address,
                                 const std::filesystem::path& proc = "/proc");

// CPU seconds, user and system, that all threads of the processes have used since their start.
// Nothing if one process has ended.
std::optional<double> ReadCpuSeconds(const std::vector<pid_t>& processes);
// The same for this process.
double OwnCpuSeconds();

// Resident memory, now and the peak since start, summed over processes.
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

// A child process that runs this program as a server of one folder, on a free loopback port and on
// the CPU. It reads settings from the environment, except for address, encryption, access and
// collections, and reads no settings file. The destructor stops it with SIGTERM and waits for its
// end.
class StartedServer {
 public:
  // Starts the server and waits until it has loaded the folder and listens.
  //   collection  the name of the folder's collection on the server
  // Errors: kUnavailable if no process can be started, if the server ends first (with its output),
  //         or if it has not loaded the folder within half an hour.
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

  // Waits until the server prints its address, for at most half an hour.
  absl::Status AwaitAddress(const std::string& folder);
  std::string Printed() const;

  const pid_t process_;
  bool ended_ = false;
  const File printed_;  // the server's output, in an unnamed file: unlike a pipe it cannot fill up
                        // and block the server
  std::string address_;
};

}  // namespace simile::cli::bench
