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

// Whether the reply of a finished task is large.
inline bool HasLargeAnswer(const QueuedTask& finished) {
  return finished.large_reply && finished.answer.ok();
}
// Calls `done` and frees the task.
void HandOut(std::unique_ptr<QueuedTask> finished);

// Threads that hand out answers, which builds replies. One thread serves large replies, so that a
// large reply never delays a small one; the others serve small replies. Owned by the executor.
class Completers {
 public:
  //   threads          for small replies; at least one
  //   small_lag_from   small replies lag when at least this many answered queries wait to be handed
  //                    out
  //   large_lag_from   large replies lag when at least this many estimated bytes wait
  //   small_caught_up  called without a lock when small replies no longer lag
  Completers(unsigned threads, std::uint64_t small_lag_from, std::uint64_t large_lag_from,
             std::function<void()> small_caught_up);
  ~Completers();  // as End()

  // Queues a finished task. Takes no memory.
  void Add(std::unique_ptr<QueuedTask> finished);
  // Whether too much waits to be handed out.
  bool small_lags() const { return Lags(small_); }
  bool large_lags() const { return Lags(large_); }
  // Hands out all queued answers, then joins. Nothing may be added after the call.
  void End();

 private:
  // Answers of one kind of reply.
  struct Queue {
    explicit Queue(std::uint64_t from) : lag_from(from) {}

    const std::uint64_t lag_from;
    std::condition_variable wake;
    TaskList finished;
    std::uint64_t load = 0;  // queries or bytes of the queued tasks

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
