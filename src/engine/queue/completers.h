#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/queue/queued_task.h"

namespace simile::engine {

// Of a task that has its answer or its error: whether its reply is large.
inline bool HasLargeAnswer(const QueuedTask& finished) {
  return finished.large_reply && finished.answer.ok();
}
// Calls `done` and frees the task.
void HandOut(std::unique_ptr<QueuedTask> finished);

// Threads that hand out answers, which builds replies: some for small replies, and one for large
// ones, so that a large one never delays a small one. Owned by the executor.
class Completers {
 public:
  //   threads          for small replies; at least one
  //   small_lag_from   from this many queries on that wait to be handed out, small replies lag
  //   large_lag_from   from this many bytes on, as estimated, large ones do
  //   small_caught_up  called without a lock when small replies no longer lag
  Completers(unsigned threads, std::uint64_t small_lag_from, std::uint64_t large_lag_from,
             std::function<void()> small_caught_up);
  ~Completers();  // as End()

  // Takes no memory.
  void Add(std::unique_ptr<QueuedTask> finished);
  // Whether too much waits to be handed out.
  bool small_lags() const { return Lags(small_); }
  bool large_lags() const { return Lags(large_); }
  // Hands out what it has and joins. Nothing may be added after it.
  void End();

 private:
  // Answers of one kind of reply.
  struct Queue {
    explicit Queue(std::uint64_t from) : lag_from(from) {}

    const std::uint64_t lag_from;
    std::condition_variable wake;
    TaskList finished;
    std::uint64_t load = 0;  // queries or bytes of those

    bool lags() const { return load >= lag_from; }
  };
  bool Lags(const Queue& queue) const;
  void Run(Queue& queue);

  const std::function<void()> small_caught_up_;
  mutable std::mutex mutex_;  // guards what follows, up to ending_
  Queue small_;               // its load is queries
  Queue large_;               // its load is bytes
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace simile::engine
