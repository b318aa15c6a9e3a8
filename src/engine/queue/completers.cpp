#include "engine/queue/completers.h"

#include <algorithm>
#include <utility>

#include <absl/cleanup/cleanup.h>

#include "base/threads.h"

namespace simile::engine {

namespace {

std::uint64_t EstimateLoad(const QueuedTask& finished) {
  return HasLargeAnswer(finished) ? finished.task->reply_bytes_estimate : finished.request.searches;
}

}  // namespace

void HandOut(std::unique_ptr<QueuedTask> finished) {
  // A pass may keep a task after the task is answered. So `done` and what it owns are freed here.
  const auto done = std::move(finished->task->done);
  done(std::move(finished->answer));
}

Completers::Completers(unsigned threads, std::uint64_t small_lag_from, std::uint64_t large_lag_from,
                       std::function<void()> small_caught_up)
    : small_caught_up_(std::move(small_caught_up)), small_(small_lag_from), large_(large_lag_from) {
  // When starting a thread throws, joins the threads that were started before.
  absl::Cleanup end = [this] { End(); };
  for (unsigned i = 0; i < std::max(1U, threads); ++i) {
    threads_.emplace_back([this] { Run(small_); });
  }
  threads_.emplace_back([this] { Run(large_); });
  std::move(end).Cancel();
}

Completers::~Completers() { End(); }

void Completers::Add(std::unique_ptr<QueuedTask> finished) {
  Queue& queue = HasLargeAnswer(*finished) ? large_ : small_;
  {
    const std::lock_guard lock(mutex_);
    queue.load += EstimateLoad(*finished);
    queue.finished.Add(std::move(finished));
  }
  queue.wake.notify_one();
}

bool Completers::Lags(const Queue& queue) const {
  const std::lock_guard lock(mutex_);
  return queue.lags();
}

void Completers::End() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  small_.wake.notify_all();
  large_.wake.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Completers::Run(Queue& queue) {
  base::NameThread("simile-answer");
  std::unique_lock lock(mutex_);
  for (;;) {
    queue.wake.wait(lock, [&] { return ending_ || !queue.finished.empty(); });
    if (queue.finished.empty()) return;
    std::unique_ptr<QueuedTask> finished = queue.finished.TakeFirst();
    const bool lagged = queue.lags();
    queue.load -= EstimateLoad(*finished);
    const bool caught_up = lagged && !queue.lags();
    lock.unlock();
    if (caught_up && &queue == &small_) small_caught_up_();
    HandOut(std::move(finished));
    lock.lock();
  }
}

}  // namespace simile::engine
