#pragma once

#include <optional>

#include "data/file_descriptor.h"

namespace simile::app {

// SIGTERM and SIGINT as something to wait for. Threads started while it lives inherit the blocked
// signals, so make it before any other thread; then no code ever runs inside a signal handler.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable when a signal waits
  // The next signal that waits, if any. Does not block.
  std::optional<int> Take();

 private:
  data::FileDescriptor fd_;
};

}  // namespace simile::app
