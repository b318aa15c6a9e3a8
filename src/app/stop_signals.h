#pragma once

#include <optional>

#include "base/file_descriptor.h"

namespace simile::app {

// Turns SIGTERM and SIGINT into a descriptor to poll, so that no code runs in a signal handler.
// REQUIRES: made before any other thread, because threads inherit the blocked signals.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable when a signal is pending
  // Removes and returns the next pending signal, if any. Does not block.
  std::optional<int> Next();

 private:
  base::FileDescriptor fd_;
};

}  // namespace simile::app
