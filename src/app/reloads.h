#pragma once

#include <functional>
#include <optional>

#include "app/background_task.h"
#include "observe/log.h"

namespace simile::app {

// Reloads on SIGHUP what changed on disk, on a thread of its own. A request during a reload is
// followed by another one, since a folder may have changed after it was read. A reload that fails,
// for want of memory, a thread or a descriptor, ends with a line in the log.
class Reloads {
 public:
  //   reload  may throw
  //   log     borrowed
  Reloads(std::function<void()> reload, const observe::Logger& log);

  void Request() { is_requested_ = true; }
  // Begins what is requested and ends what is done. To be called once everything is loaded, after a
  // request and when done_fd is readable.
  void Advance();
  int done_fd() const { return running_ ? running_->done_fd() : -1; }

 private:
  // Runs the step; logs why it failed.
  template <class Step>
  void Try(Step&& step) const noexcept;

  const std::function<void()> reload_;
  const observe::Logger& log_;
  bool is_requested_ = false;
  std::optional<BackgroundTask> running_;
};

}  // namespace simile::app
