#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "simile/turn.h"

namespace simile::backend::cpu {

// Divides `count` items among the threads of a job, which share a counter that starts at 0: claims
// up to part_max items at a time and calls work(first, end) for each part, until all are claimed.
template <class Work>
void ClaimParts(std::atomic<std::size_t>& next, std::size_t count, std::size_t part_max,
                Work work) {
  for (;;) {
    const std::size_t first = next.fetch_add(part_max, std::memory_order_relaxed);
    if (first >= count) return;
    work(first, std::min(first + part_max, count));
  }
}

// The items of a job that may be paused: counts the claimed items.
class PartsOfJob {
 public:
  void Reset() { next_.store(0, std::memory_order_relaxed); }
  // As ClaimParts, until the turn is over; each thread of the job claims at least once.
  template <class Work>
  void Claim(const Turn& turn, std::size_t count, std::size_t part_max, Work work) {
    do {
      const std::size_t first = next_.fetch_add(part_max, std::memory_order_relaxed);
      if (first >= count) return;
      work(first, std::min(first + part_max, count));
    } while (!turn.IsOver());
  }
  // Whether all items are done. REQUIRES: no thread is in the job.
  bool AreDone(std::size_t count) const { return next_.load(std::memory_order_relaxed) >= count; }

 private:
  std::atomic<std::size_t> next_{0};
};

// Steps that follow each other and may be paused: counts the completed steps.
class StepsDone {
 public:
  void Reset() { done_ = 0; }
  // Takes step number `step` unless it is done already.
  //   take  bool(): does the step; returns whether it is done
  // Returns whether the step is done, so that steps can be joined by &&.
  template <class Take>
  bool Do(std::size_t step, Take take) {
    if (done_ > step) return true;
    if (!take()) return false;
    done_ = step + 1;
    return true;
  }

 private:
  std::size_t done_ = 0;
};

// A fixed set of threads that run one job at a time together with the thread that calls Run.
// Run is called by one thread at a time (the backend serialises its searches); nothing is allocated
// after construction.
class ThreadPool {
 public:
  // Starts threads - 1 workers; the caller of Run is the remaining one. Workers are pinned if there
  // is a thread for every processor that this process may use: one worker to each processor except
  // the caller's. So no worker waits behind the caller. When the system refuses a thread, the pool
  // is smaller: see thread_count().
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // While this object lives, jobs leave the last worker idle if the turn asks for it. Made by the
  // thread that calls Run.
  class ScopedTurn {
   public:
    ScopedTurn(ThreadPool& pool, const Turn& turn) : pool_(pool) {
      pool_.leaves_one_ = turn.LeavesOneThread();
    }
    ~ScopedTurn() { pool_.leaves_one_ = false; }
    ScopedTurn(const ScopedTurn&) = delete;
    ScopedTurn& operator=(const ScopedTurn&) = delete;

   private:
    ThreadPool& pool_;
  };

  unsigned thread_count() const { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls job(participant) once on this thread (participant 0) and at most once on each worker
  // (1 .. thread_count() - 1), and returns when all calls have. The job divides its work by an
  // atomic counter (ClaimParts), so that no thread waits for a worker that wakes too late to claim
  // a part. Everything the job wrote is visible after the return. A pool without workers only calls
  // the job; several threads may then call Run at once. REQUIRES: job does not throw.
  template <class Job>
  void Run(Job& job) {
    RunErased([](void* erased, unsigned participant) { (*static_cast<Job*>(erased))(participant); },
              &job);
  }

 private:
  using JobFunction = void (*)(void* job, unsigned participant);

  //   flags  kLeavesLast or 0
  void Open(JobFunction function, void* job, std::uint32_t flags = 0);
  void PinWorkers();
  void MakeWayForCaller();
  void RunErased(JobFunction function, void* job);
  void Work(unsigned participant);

  // The shared state in one word, so that threads can wait on it:
  //   bit 0        whether the job may be entered
  //   bits 1..10   workers inside it
  //   bit 11       whether the last worker stays out of it
  //   bits 12..31  number of the job, so that no worker enters one twice
  static constexpr std::uint32_t kOpen = 1;
  static constexpr std::uint32_t kOneInside = 2;
  static constexpr std::uint32_t kInsideMask = 0x7fe;
  static constexpr std::uint32_t kLeavesLast = 1U << 11;
  static constexpr std::uint32_t kNextJob = 1U << 12;
  static constexpr unsigned kWorkersMax = kInsideMask / kOneInside;

  std::atomic<std::uint32_t> state_{0};
  // Written only while the job is closed and no worker is inside. A null function ends the workers.
  JobFunction function_ = nullptr;
  void* job_ = nullptr;
  bool leaves_one_ =
      false;  // whether the last worker stays out of jobs; used by the thread that calls Run
  std::vector<std::thread> workers_;
  std::vector<int> homes_;    // processor of each worker; empty when they are not pinned
  int caller_processor_ = 0;  // the one left to the caller
};

}  // namespace simile::backend::cpu
