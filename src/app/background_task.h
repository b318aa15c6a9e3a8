#pragma once

#include <functional>
#include <thread>

#include "data/file_descriptor.h"

namespace simile::app {

// Something slow on a thread of its own, whose end can be polled for along with other descriptors.
class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> work);
  ~BackgroundTask();  // waits for the end
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  int done_fd() const { return done_.get(); }  // readable from the end on
  bool done() const;

 private:
  data::FileDescriptor done_;
  std::thread thread_;
};

}  // namespace simile::app
