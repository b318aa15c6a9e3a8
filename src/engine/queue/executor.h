#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "engine/queue/completers.h"
#include "engine/queue/queued_task.h"
#include "engine/queue/schedule.h"
#include "engine/queue/slice_runner.h"
#include "engine/search/search_task.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::engine {

// The queries of one lane now. One with several vectors counts as many.
struct LaneCounts {
  std::uint64_t waiting = 0;            // nothing of their task has begun
  std::uint64_t running = 0;            // begun, not yet answered
  std::uint64_t large_waiting = 0;      // of those that wait, the ones of a call beside the queue
  std::uint64_t wait_ms_estimated = 0;  // until all that waits or runs is answered
};

// Counts since start, for metrics. Read from any thread.
struct ExecutorCounts {
  std::uint64_t batches = 0;       // passes that began, and slices of hard queries
  std::uint64_t queries = 0;       // begun: answered, or failed on the way
  std::uint64_t expired = 0;       // queries whose deadline passed while they waited
  std::uint64_t cancelled = 0;     // queries whose caller left while they waited
  std::uint64_t rejected = 0;      // queries refused: the queue was full, or the wait too long
  std::uint64_t queue_depth = 0;   // queries waiting now, in all lanes
  std::uint64_t queue_bytes = 0;   // that tasks hold which wait or run now
  std::uint64_t paused_bytes = 0;  // that passes under way hold
  std::array<LaneCounts, kLaneCount> lanes;
};

// The queue in front of a backend. Tasks wait in lanes; schedule.h says which of them runs next,
// for at most about kSliceMs at a time. One thread at a time leads: it takes slices and runs them
// on the device. Mostly that is the dispatch thread; while little waits, an I/O thread leads where
// it is (RunHere), which saves waking another. While a device works on a pass, the dispatch thread
// starts the next pass if that is full. Answers are handed out by completers, so that
// building a reply never holds up the next pass. When small replies fall queue_queries_max queries
// behind, passes wait for them, and the queue fills; when large ones fall queue_bytes_max behind,
// calls for more of those are refused. So nothing here grows without bound. What expires in the
// queue is answered at its deadline, what is cancelled at once.
//
// An allocation that fails costs the tasks that needed it their answer, which is then
// OUT_OF_MEMORY, and nothing else: what all share has its space before it is touched.
class Executor {
 public:
  struct Options {
    std::uint32_t queue_queries_max = 1'024;
    std::uint32_t batch_queries_max = 1'024;
    std::uint64_t queue_bytes_max = std::uint64_t{256} << 20;
    unsigned completers = 1;  // threads for small replies; large ones have one of their own
  };
  // Called after each pass and each slice of hard queries, from the thread that ran it, before the
  // last of its answers are handed out, for histograms. The report is only valid during the call.
  struct BatchReport {
    std::string_view backend;      // that ran the search: "gpu", or the fallback backend
    std::uint32_t batch_size = 0;  // queries
    std::uint64_t compute_us = 0;
    std::vector<std::uint64_t> queue_us;  // one for each task that it began
  };
  using Observer = std::function<void(const BatchReport&)>;
  //   served_by  for the receipt of every answer without a fallback backend
  //   clock      borrowed for the executor's life
  //   observer   may be empty
  //   read       may be empty: there is no device
  Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
           SliceRunner::ReadDeviceMemory read = {});
  ~Executor();  // stops as Stop()

  // Queues a task, or refuses it without keeping it. Never runs anything.
  // REQUIRES: the task has a snapshot, at least one query, their vectors, and `done`.
  // Errors: QUEUE_FULL (with what waits, and when there should be space, or when the wait should be
  //         short enough for the deadline); CANCELLED; DEADLINE_EXCEEDED; STOPPING after Stop. May
  //         throw bad_alloc; then the task was not queued either.
  absl::Status Submit(std::unique_ptr<SearchTask> task);
  // Adds a task to the arrivals, which the calling thread queues together by RunHere before it
  // waits for anything. Submits it when the arrivals have more than kGatheredBytes: the queue's
  // bounds do not count them yet. Requires and may throw as Submit, with its errors.
  absl::Status Gather(std::unique_ptr<SearchTask> task, TaskList& arrivals);
  // Queues the arrivals. A refused arrival ends with an error of Submit. Then runs what waits on
  // the calling thread when the device is idle and all that waits is plain and takes less than
  // kRunHereMs by estimate. Calls `done` of the first replies, while they are small together.
  // Completers call `done` of the other replies. When it runs nothing, the dispatch thread is awake
  // if anything waits. Returns whether anything was run or refused. Cheap when nothing waits.
  // REQUIRES: the executor outlives the call.
  bool RunHere(TaskList& arrivals);
  // Answers what waits with STOPPING, finishes the slices under way, joins. Idempotent.
  void Stop();
  ExecutorCounts counts() const;

  // How long passes over the snapshot take, by their number of searches: the measured ones.
  std::vector<CostEstimator::PassTime> ListPassTimes(const Snapshot& snapshot) const;
  // The estimated time of a pass of this many searches for k hits each. It follows from passes that
  // were measured, else from a model.
  double EstimateMs(const Snapshot& snapshot, std::uint32_t k, std::uint32_t searches) const;
  // Forgets what passes over the snapshot took, because a faster strategy is now in use.
  void ForgetTimes(const Snapshot& snapshot);
  // Of an answer for which nothing needs to be searched. From any thread.
  observe::Receipt ReceiptWithoutSearch(const Snapshot& snapshot) const {
    return runner_.ReceiptWithoutSearch(snapshot);
  }

  // Waking the dispatch thread and its workers costs 20 to 60 us, which is as much as a small pass.
  // A thread that carries I/O is held up no longer than this.
  static constexpr double kRunHereMs = 1;
  static constexpr std::uint64_t kGatheredBytes = 8U << 20;

 private:
  using QueuedTaskPtr = std::unique_ptr<QueuedTask>;

  // A slice that was chosen and is not finished.
  struct ActiveSlice {
    Schedule::Slice slice;
    std::vector<QueuedTask*> tasks;  // of the slice, in its order
    bool has_callers = false;        // not only measurements
    SliceRunner::StartedSlice started;
  };

  void Dispatch();        // the dispatch thread
  void WatchDeadlines();  // the watching thread
  void WakeDispatcher();
  QueuedTaskPtr Prepare(std::unique_ptr<SearchTask> task);
  // Queues the arrivals. Whether any was refused.
  bool TakeArrivals(TaskList& arrivals);
  // Called when the task's caller is gone, on the thread that found out.
  void Cancel(const QueuedTask& queued);

  // Of the thread that leads, with mutex_ held:
  // Chooses what runs now; false when there is nothing. REQUIRES: no slice is under way.
  bool TakeSlice();
  // Chooses what a device runs after running_; false if the next pass is not full.
  bool TakeNext();
  void BeginTasks(ActiveSlice& active, Clock::TimePoint now);
  // For all that taking and running a slice lists; what has waited longest pays for its lack.
  // False when nothing is left.
  bool MakeSpace();
  void Reserve(ActiveSlice& active);  // throws bad_alloc
  // Gives up the tasks whose callers have left or whose deadlines have passed. Of a task with
  // slices under way nothing more is begun; it ends with the last of them.
  void GiveUpBegun();
  void Begin(QueuedTask& queued, Clock::TimePoint now);
  // Takes the tasks that are answered out of the queue and appends them.
  void FinishSlice(TaskList& finished);
  // Gives all but the first small replies to the completers.
  void LeaveToCompleters(TaskList& finished);
  // Without mutex_:
  void StartSlice(ActiveSlice& active) {
    active.started = runner_.Start(active.slice, active.tasks);
  }
  void RunSlice(bool has_next);  // running_
  // While running_'s pass goes on that may not be paused: gives up its tasks whose callers have
  // left, or all of them for a stop. Returns whether any is left.
  bool KeepRunning();

  // REQUIRES of these: mutex_ is held.
  bool CanLead() const;  // completions keep up
  // Takes the task, or refuses it. May throw bad_alloc; then the task was not taken.
  absl::Status Enqueue(QueuedTaskPtr& queued);
  absl::Status Admit(QueuedTask& queued, Clock::TimePoint now);
  bool TakesLargeShare(const QueuedTask& queued) const;
  // Why the queue has no space for it; empty when it has.
  std::string ObstacleTo(const QueuedTask& queued) const;
  // The errors of a task that is not run. They count it.
  absl::Status Refuse(const QueuedTask& queued, std::string_view why, double retry_ms);
  absl::Status Cancelled(const QueuedTask& queued);
  absl::Status Expired(const QueuedTask& queued, Clock::TimePoint now);
  double LaneMs(const QueuedTask& queued) const;
  LaneCounts& CountsOf(const QueuedTask& queued);
  std::uint64_t QueriesInQueue() const;  // those that fill it
  void CountWaiting(const QueuedTask& queued);
  void CountNotWaiting(const QueuedTask& queued);
  // Takes a task out of the queue, wherever it is there.
  QueuedTaskPtr Remove(std::uint64_t id);
  // The same, and answers it with an error. Takes no memory.
  void Fail(std::uint64_t id, absl::Status error);
  void ExpireWaiting(Clock::TimePoint now);
  void StopWaiting();

  const Options options_;
  const Clock& clock_;
  const Observer observer_;

  mutable std::mutex mutex_;               // guards what follows, up to next_
  std::condition_variable dispatch_wake_;  // there is work to lead, or stopping_ was set
  std::condition_variable watch_wake_;  // a nearer deadline arrived, or the dispatch thread ended
  std::map<std::uint64_t, QueuedTaskPtr> tasks_;  // that wait or run, by id
  Schedule schedule_;
  std::uint64_t next_id_ = 1;
  bool leading_ = false;          // some thread leads
  bool dispatch_wanted_ = false;  // the dispatch thread is to lead as soon as it can
  // No task expires before this. Exact after ExpireWaiting; a task that leaves the queue only makes
  // it too early, which costs one more call.
  Clock::TimePoint next_expiry_ = Clock::TimePoint::max();
  bool stopping_ = false;
  bool dispatch_ended_ = false;
  ExecutorCounts counts_;
  // Read without mutex_ by the thread that leads, which alone changes them.
  ActiveSlice running_;  // runs now, or ran last
  ActiveSlice next_;     // started: the device runs it after running_

  // Something has come since the slice began for which it ends early.
  std::atomic<bool> yield_ = false;

  // Used by the thread that leads only, kept from slice to slice.
  // Begun and not answered. Only the thread that leads takes these out of the queue.
  std::vector<QueuedTask*> begun_;
  SliceRunner runner_;
  BatchReport report_;

  Completers completers_;
  std::mutex join_mutex_;   // held while joining, so that every Stop returns after the end
  std::thread dispatcher_;  // last: the threads use all of the above
  std::thread watcher_;
};

}  // namespace simile::engine
