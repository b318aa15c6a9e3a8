#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "observe/log.h"

namespace simile::app {

// Tells the process that started the server when the server serves and when it stops. A file exists
// in between, and messages follow the protocol of sd_notify(3) (systemd's Type=notify). Owned by
// wiring; all methods may be called from any thread.
class Readiness {
 public:
  //   file           empty: none
  //   notify_socket  the value of NOTIFY_SOCKET; empty: none
  //   log            borrowed; reports messages that the socket does not take
  Readiness(std::filesystem::path file, std::string notify_socket, const observe::Logger& log);

  // Removes the file of a server that was killed, so that it is not taken for this one's.
  // Errors: kUnavailable naming the file and the system's reason.
  absl::Status RemoveStaleFile();

  // The server serves at this address. Does nothing after Withdraw.
  // Errors: kUnavailable when the file cannot be written.
  absl::Status Announce(std::string_view address);

  // The server begins to stop. Idempotent.
  void Withdraw();

 private:
  absl::Status RemoveFile() const;
  void Notify(std::string_view state) const;

  const std::filesystem::path file_;
  const std::string notify_socket_;
  const observe::Logger& log_;
  std::mutex mutex_;  // guards withdrawn_, and is held while the file changes
  bool withdrawn_ = false;
};

}  // namespace simile::app
