#pragma once

#include <optional>

#include "base/file_descriptor.h"

namespace simile::app {

// Turns SIGTERM, SIGINT and the end of the parent process into a descriptor to poll, so that no
// code runs in a signal handler.
// REQUIRES: made by the main thread before any other, because threads inherit the blocked signals.
class StopSignals {
 public:
  //   die_with_parent  whether the end of the process that started this one is a request to stop
  explicit StopSignals(bool die_with_parent);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  struct Request {
    int signal = 0;
    bool parent_ended = false;
  };
  int fd() const { return fd_.get(); }  // readable when a request is pending
  // Removes and returns the next pending request, if any. Does not block.
  std::optional<Request> Next();

 private:
  base::FileDescriptor fd_;
};

}  // namespace simile::app
