#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

namespace simile::cli::bench {

// This program as a server of one folder on a free port of the loopback, with the CPU as its
// backend. It takes the settings of the environment, but those of the address, of encryption and of
// access. The destructor stops it with SIGTERM and waits for its end.
class OwnServer {
 public:
  // Starts it and waits until it has loaded the folder and listens.
  //   collection  the name of the folder's rows on it
  // Errors: kUnavailable when no process can be started or the server ends first, with its words.
  static absl::StatusOr<std::unique_ptr<OwnServer>> Start(const std::string& collection,
                                                          const std::string& folder);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const std::string& address() const { return address_; }
  // What it has printed: the reason when it no longer answers.
  std::string Printed() const;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  OwnServer(pid_t process, File printed) : process_(process), printed_(std::move(printed)) {}

  // Waits until its address is printed.
  absl::Status AwaitAddress();

  const pid_t process_;
  bool ended_ = false;
  const File printed_;  // a file without a name, which no output can fill as it would a pipe
  std::string address_;
};

}  // namespace simile::cli::bench
