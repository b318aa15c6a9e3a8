#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

namespace simile::cli::bench {

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
