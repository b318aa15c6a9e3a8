#include "app/background_task.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace simile::app {

BackgroundTask::BackgroundTask(std::function<void()> work)
    : done_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!done_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this, work = std::move(work)] {
    work();
    eventfd_write(done_.get(), 1);
  });
}

BackgroundTask::~BackgroundTask() { thread_.join(); }

bool BackgroundTask::done() const {
  pollfd watched{done_.get(), POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

}  // namespace simile::app
