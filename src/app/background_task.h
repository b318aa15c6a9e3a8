#pragma once

#include <functional>
#include <thread>

#include "base/file_descriptor.h"

namespace simile::app {

// Runs a slow function on its own thread. Its end can be polled for along with other descriptors.
class BackgroundTask {
 public:
  // Throws system_error without a thread or a descriptor for it. `work` must not throw.
  explicit BackgroundTask(std::function<void()> work);
  ~BackgroundTask();  // waits until the function returns
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  int done_fd() const { return done_.get(); }  // readable once the function has returned
  bool done() const;

 private:
  base::FileDescriptor done_;
  std::thread thread_;
};

}  // namespace simile::app
