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

// The queries of one lane now. A query with several vectors counts once for each vector.
struct LaneCounts {
  std::uint64_t waiting = 0;            // nothing of their task has begun
  std::uint64_t running = 0;            // begun, not yet answered
  std::uint64_t large_waiting = 0;      // waiting queries of a large call beside the queue
  std::uint64_t wait_ms_estimated = 0;  // until all waiting and running queries are answered
};

// Counts since start, for metrics. Read from any thread.
struct ExecutorCounts {
  std::uint64_t batches = 0;       // passes that began, and slices of hard queries
  std::uint64_t queries = 0;       // queries that began, whether answered or failed
  std::uint64_t expired = 0;       // queries whose deadline passed while they waited
  std::uint64_t cancelled = 0;     // queries whose caller left while they waited
  std::uint64_t rejected = 0;      // queries refused: the queue was full, or the wait too long
  std::uint64_t queue_depth = 0;   // queries waiting now, in all lanes
  std::uint64_t queue_bytes = 0;   // bytes that waiting and running tasks hold now
  std::uint64_t paused_bytes = 0;  // bytes that passes under way hold
  std::array<LaneCounts, kLaneCount> lanes;
};

// The queue in front of a backend. Tasks wait in lanes; schedule.h says which of them runs next,
// for at most about kSliceMs at a time. One thread at a time leads: it takes slices and runs them
// on the device. Usually the dispatch thread leads. While little waits, an I/O thread leads itself
// (RunHere), which saves waking another thread. While a device works on a pass, the dispatch thread
// starts the next pass if that pass is full. Completers hand out answers, so that building a reply
// never holds up the next pass. When small replies are queue_queries_max queries behind, passes
// wait for them, and the queue fills. When large replies are queue_bytes_max behind, calls for
// large replies are refused. So nothing grows without bound. A task that expires in the queue is
// answered at its deadline; a cancelled task is answered at once.
//
// An allocation that fails ends only the tasks that needed it, with OUT_OF_MEMORY. Everything that
// tasks share has its space reserved before it is changed.
class Executor {
 public:
  struct Options {
    std::uint32_t queue_queries_max = 1'024;
    std::uint32_t batch_queries_max = 1'024;
    std::uint64_t queue_bytes_max = std::uint64_t{256} << 20;
    unsigned completers = 1;  // threads for small replies; large replies have their own thread
  };
  // Called after each pass and each slice of hard queries, for histograms: on the thread that ran
  // it, before the last of its answers are handed out. The report is valid only during the call.
  struct BatchReport {
    std::string_view backend;      // that ran the search: "gpu", or the fallback backend
    std::uint32_t batch_size = 0;  // queries
    std::uint64_t compute_us = 0;
    std::vector<std::uint64_t> queue_us;  // one for each task that began with it
  };
  using Observer = std::function<void(const BatchReport&)>;
  //   served_by  the backend in the receipt of every answer that no fallback backend gave
  //   clock      borrowed for the executor's life
  //   observer   may be empty
  //   read       may be empty: there is no device
  Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
           SliceRunner::ReadDeviceMemory read = {});
  ~Executor();  // stops as Stop()

  // Queues a task, or refuses it without keeping it. Never runs anything.
  // REQUIRES: the task has a snapshot, at least one query, their vectors, and `done`.
  // Errors: QUEUE_FULL (with the amount that waits, and the time after which the task should be
  //         accepted); CANCELLED; DEADLINE_EXCEEDED; STOPPING after Stop. May throw bad_alloc; then
  //         the task was not queued either.
  absl::Status Submit(std::unique_ptr<SearchTask> task);
  // Adds a task to the arrivals, which the calling thread queues together by RunHere before it
  // waits for anything. Submits the task at once when the arrivals have more than kGatheredBytes,
  // because the queue's bounds do not count arrivals. Requires, throws and fails as Submit.
  absl::Status Gather(std::unique_ptr<SearchTask> task, TaskList& arrivals);
  // Queues the arrivals. A refused arrival ends with an error of Submit. Then runs the waiting
  // tasks on the calling thread, if the device is idle and all of them are plain and take less than
  // kRunHereMs together by estimate. Calls `done` for the first replies, as long as they are small
  // together; completers call the others. If it runs nothing and anything waits, the dispatch
  // thread is awake. Returns whether anything was run or refused. Cheap when nothing waits.
  // REQUIRES: the executor outlives the call.
  bool RunHere(TaskList& arrivals);
  // Answers all waiting tasks with STOPPING, finishes the slices under way, joins. Idempotent.
  void Stop();
  ExecutorCounts counts() const;

  // The measured times of passes over the snapshot, by number of searches.
  std::vector<CostEstimator::PassTime> ListPassTimes(const Snapshot& snapshot) const;
  // The estimated time of a pass of this many searches for k hits each. Follows from measured
  // passes, else from a model.
  double EstimateMs(const Snapshot& snapshot, std::uint32_t k, std::uint32_t searches) const;
  // Forgets the times of passes over the snapshot. Called when a faster strategy is in use.
  void ForgetTimes(const Snapshot& snapshot);
  // The receipt of an answer that needs no search. From any thread.
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
    std::vector<QueuedTask*> tasks;  // the slice's tasks, in its order
    bool has_callers = false;        // whether any task is not a measurement
    SliceRunner::StartedSlice started;
  };

  void Dispatch();        // the dispatch thread
  void WatchDeadlines();  // the watching thread
  void WakeDispatcher();
  QueuedTaskPtr Prepare(std::unique_ptr<SearchTask> task);
  // Queues the arrivals. Returns whether any was refused.
  bool TakeArrivals(TaskList& arrivals);
  // Called when the task's caller is gone, on the thread that found out.
  void Cancel(const QueuedTask& queued);

  // For the thread that leads, with mutex_ held:
  // Chooses the slice that runs now; false when there is none. REQUIRES: no slice is under way.
  bool TakeSlice();
  // Chooses what a device runs after running_; false if the next pass is not full.
  bool TakeNext();
  void BeginTasks(ActiveSlice& active, Clock::TimePoint now);
  // Reserves the lists that taking and running a slice needs. Without memory fails the task that
  // has waited longest, and tries again. False when no task is left.
  bool MakeSpace();
  void Reserve(ActiveSlice& active);  // throws bad_alloc
  // Gives up the tasks whose callers have left or whose deadlines have passed. A task with slices
  // under way begins nothing more and ends with the last of these slices.
  void GiveUpBegun();
  void Begin(QueuedTask& queued, Clock::TimePoint now);
  // Takes the answered tasks out of the queue and appends them to `finished`.
  void FinishSlice(TaskList& finished);
  // Gives all but the first small replies to the completers.
  void LeaveToCompleters(TaskList& finished);
  // Without mutex_:
  void StartSlice(ActiveSlice& active) {
    active.started = runner_.Start(active.slice, active.tasks);
  }
  void RunSlice(bool has_next);  // running_
  // Called while running_'s pass, which may not be paused, goes on. Gives up its tasks whose
  // callers have left, or all of its tasks for a stop. Returns whether any is left.
  bool KeepRunning();

  // The following REQUIRE: mutex_ is held.
  bool CanLead() const;  // whether completions keep up
  // Takes the task, or refuses it. May throw bad_alloc; then the task was not taken.
  absl::Status Enqueue(QueuedTaskPtr& queued);
  absl::Status Admit(QueuedTask& queued, Clock::TimePoint now);
  bool TakesLargeShare(const QueuedTask& queued) const;
  // Why the queue has no space for the task; empty when it has space.
  std::string ObstacleTo(const QueuedTask& queued) const;
  // Make the error of a task that is not run, and count the task.
  absl::Status Refuse(const QueuedTask& queued, std::string_view why, double retry_ms);
  absl::Status Cancelled(const QueuedTask& queued);
  absl::Status Expired(const QueuedTask& queued, Clock::TimePoint now);
  double LaneMs(const QueuedTask& queued) const;
  LaneCounts& CountsOf(const QueuedTask& queued);
  std::uint64_t QueriesInQueue() const;  // the queries that count against its bound
  void CountWaiting(const QueuedTask& queued);
  void CountNotWaiting(const QueuedTask& queued);
  // Takes a task out of the queue and all its lists.
  QueuedTaskPtr Remove(std::uint64_t id);
  // As Remove, and answers the task with an error. Takes no memory.
  void Fail(std::uint64_t id, absl::Status error);
  void ExpireWaiting(Clock::TimePoint now);
  void StopWaiting();

  const Options options_;
  const Clock& clock_;
  const Observer observer_;

  mutable std::mutex mutex_;               // guards what follows, up to next_
  std::condition_variable dispatch_wake_;  // there is work to lead, or stopping_ was set
  std::condition_variable watch_wake_;  // a nearer deadline arrived, or the dispatch thread ended
  std::map<std::uint64_t, QueuedTaskPtr> tasks_;  // tasks that wait or run, by id
  Schedule schedule_;
  std::uint64_t next_id_ = 1;
  bool leading_ = false;          // some thread leads
  bool dispatch_wanted_ = false;  // the dispatch thread should lead as soon as it can
  // No task expires before this time. Exact after ExpireWaiting. When a task leaves the queue the
  // time may be too early, which costs one more call.
  Clock::TimePoint next_expiry_ = Clock::TimePoint::max();
  bool stopping_ = false;
  bool dispatch_ended_ = false;
  ExecutorCounts counts_;
  // Only the thread that leads changes these; it reads them without mutex_.
  ActiveSlice running_;  // runs now, or ran last
  ActiveSlice next_;     // started: the device runs it after running_

  // Whether a task has come since the slice began for which the slice should end early.
  std::atomic<bool> yield_ = false;

  // Used only by the thread that leads. Kept from slice to slice.
  // Tasks that have begun and are not answered. Only the thread that leads takes them out of the
  // queue.
  std::vector<QueuedTask*> begun_;
  SliceRunner runner_;
  BatchReport report_;

  Completers completers_;
  std::mutex join_mutex_;   // held while joining, so that every Stop returns after the end
  std::thread dispatcher_;  // last: the threads use all of the above
  std::thread watcher_;
};

}  // namespace simile::engine
