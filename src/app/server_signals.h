#pragma once

#include <cstdint>
#include <optional>

#include "base/file_descriptor.h"

struct signalfd_siginfo;

namespace simile::app {

// Turns the signals to a server into a descriptor to poll, so that no code runs in a signal
// handler: SIGTERM and SIGINT, the end of the parent process, and SIGHUP.
// REQUIRES: made by the main thread before any other, because threads inherit the blocked signals.
class ServerSignals {
 public:
  //   die_with_parent  whether the end of the process that started this one is a request to stop
  explicit ServerSignals(bool die_with_parent);
  ServerSignals(const ServerSignals&) = delete;
  ServerSignals& operator=(const ServerSignals&) = delete;

  enum class Kind : std::uint8_t { kStop, kParentEnded, kReload };
  struct Request {
    Kind kind = Kind::kStop;
    int signal = 0;
  };
  int fd() const { return fd_.get(); }  // readable when a request is pending
  // Removes and returns the next pending request, if any. Does not block.
  std::optional<Request> Next();

 private:
  Kind ClassifySignal(const signalfd_siginfo& info) const;

  // Then SIGHUP from a terminal that was closed stops the server. Any other SIGHUP means to reload.
  const bool started_in_terminal_;
  base::FileDescriptor fd_;
};

}  // namespace simile::app
