#include "engine/queue/executor.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/threads.h"
#include "engine/queue/queued_task.h"
#include "engine/queue/schedule.h"
#include "engine/search/call_context.h"

namespace simile::engine {
namespace {

// Building and sending a reply of this size takes some 100 us, as long as several small replies.
constexpr std::uint64_t kLargeReplyBytes = 256U << 10;

// A call that takes more than the queue over this is large.
constexpr std::uint32_t kLargeCallDivisor = 16;

// Estimates may be too low by this factor. A full queue holds as much work as its deadlines allow,
// so without the margin an estimate that is too low would make all tasks miss their deadlines.
constexpr double kEstimateMargin = 1.25;

// The bounds of the time after which a refused caller is told to try again.
constexpr double kRetryMsMin = 10;
constexpr double kRetryMsMax = 2'000;

absl::Status Stopping() {
  return base::Error(base::ErrorReason::kStopping, "the server is stopping");
}

std::string Whole(double ms) {
  return base::Grouped(static_cast<std::uint64_t>(std::clamp(ms, 0.0, 1e12)));
}

// The real time to sleep until a moment of the injected clock. Bounded, because wait_for adds it to
// the present time, which would overflow for "no deadline".
Clock::Duration SleepUntil(Clock::TimePoint moment, Clock::TimePoint now) {
  constexpr Clock::Duration kLongest = std::chrono::hours(1);
  return moment - now < kLongest ? moment - now : kLongest;
}

}  // namespace

Executor::Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
                   SliceRunner::ReadDeviceMemory read)
    : options_(options),
      clock_(clock),
      observer_(std::move(observer)),
      schedule_(options.batch_queries_max),
      runner_(std::make_shared<const ServedBy>(std::move(served_by)), clock, std::move(read)),
      completers_(options.completers, options.queue_queries_max, options.queue_bytes_max,
                  [this] { WakeDispatcher(); }) {
  // When starting the second thread throws, joins the first.
  absl::Cleanup stop = [this] { Stop(); };
  dispatcher_ = std::thread([this] { Dispatch(); });
  watcher_ = std::thread([this] { WatchDeadlines(); });
  std::move(stop).Cancel();
}

Executor::~Executor() { Stop(); }

Executor::QueuedTaskPtr Executor::Prepare(std::unique_ptr<SearchTask> task) {
  assert(task->snapshot != nullptr && task->done != nullptr && !task->queries.empty());
  auto queued = std::make_unique<QueuedTask>();
  queued->task = std::move(task);
  queued->progress.task = queued->task.get();
  queued->bytes = SumBytes(*queued->task);
  queued->large_reply = queued->task->reply_bytes_estimate >= kLargeReplyBytes;
  // Before the task is queued, because a queued task may be answered and freed at any time.
  queued->on_cancel.emplace(queued->task->cancelled, [this, raw = queued.get()] { Cancel(*raw); });
  return queued;
}

absl::Status Executor::Enqueue(QueuedTaskPtr& queued) {
  queued->request = MakeRequest(*queued->task, schedule_.estimator());
  const Clock::TimePoint now = clock_.Now();
  if (queued->task->cancelled.stop_requested()) return Cancelled(*queued);
  if (now >= queued->task->deadline) return Expired(*queued, now);
  if (absl::Status status = Admit(*queued, now); !status.ok()) return status;
  const std::uint64_t id = next_id_++;
  queued->id = id;
  const auto place = tasks_.emplace(id, nullptr).first;
  absl::Cleanup leave = [&] { tasks_.erase(place); };
  schedule_.Add(id, queued->request);
  std::move(leave).Cancel();  // from here on nothing takes memory
  CountWaiting(*queued);
  counts_.queue_bytes += queued->bytes;
  if (leading_ && schedule_.EndsEarly(running_.slice, queued->request)) yield_ = true;
  const bool nearer_deadline = queued->task->deadline < next_expiry_;
  if (nearer_deadline) next_expiry_ = queued->task->deadline;
  if (nearer_deadline) watch_wake_.notify_one();
  place->second = std::move(queued);
  return absl::OkStatus();
}

absl::Status Executor::Submit(std::unique_ptr<SearchTask> task) {
  QueuedTaskPtr queued = Prepare(std::move(task));
  {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = Enqueue(queued); !status.ok()) return status;
    if (leading_) return absl::OkStatus();  // the leading thread will find the task
  }
  WakeDispatcher();
  return absl::OkStatus();
}

absl::Status Executor::Gather(std::unique_ptr<SearchTask> task, TaskList& arrivals) {
  if (arrivals.bytes() > kGatheredBytes) return Submit(std::move(task));
  arrivals.Add(Prepare(std::move(task)));
  return absl::OkStatus();
}

bool Executor::TakeArrivals(TaskList& arrivals) {
  if (arrivals.empty()) return false;
  TaskList refused;
  {
    const std::lock_guard lock(mutex_);
    while (!arrivals.empty()) {
      QueuedTaskPtr queued = arrivals.TakeFirst();
      absl::Status taken = base::OrOutOfMemory([&] { return Enqueue(queued); });
      if (taken.ok()) continue;
      queued->answer = std::move(taken);
      refused.Add(std::move(queued));
    }
  }
  const bool any = !refused.empty();
  while (!refused.empty()) HandOut(refused.TakeFirst());
  return any;
}

bool Executor::RunHere(TaskList& arrivals) {
  const bool has_refused = TakeArrivals(arrivals);
  TaskList finished;
  {
    std::unique_lock lock(mutex_);
    if (schedule_.empty() || leading_) return has_refused;
    if (!CanLead() || stopping_ || !schedule_.IsSmall(kRunHereMs)) {
      lock.unlock();
      WakeDispatcher();
      return has_refused;
    }
    assert(!leading_);
    leading_ = true;
    double ms = 0;
    while (schedule_.IsSmall(kRunHereMs - ms) && TakeSlice()) {
      ms += running_.slice.estimated_ms;
      lock.unlock();
      StartSlice(running_);
      RunSlice(false);
      lock.lock();
      FinishSlice(finished);
    }
    LeaveToCompleters(finished);  // before Stop can end the completers
    leading_ = false;
    const bool more = !schedule_.empty() || stopping_;
    lock.unlock();
    if (more) WakeDispatcher();
  }
  while (!finished.empty()) HandOut(finished.TakeFirst());
  return true;
}

void Executor::LeaveToCompleters(TaskList& finished) {
  TaskList small;
  std::uint64_t bytes = 0;
  while (!finished.empty()) {
    QueuedTaskPtr task = finished.TakeFirst();
    bytes += task->task->reply_bytes_estimate;
    bytes < kLargeReplyBytes ? small.Add(std::move(task)) : completers_.Add(std::move(task));
  }
  while (!small.empty()) finished.Add(small.TakeFirst());
}

// Removes a waiting task. The leading thread gives up a task that has begun, between two slices.
void Executor::Cancel(const QueuedTask& queued) {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(queued.id);  // absent while a task arrives or leaves
  if (found == tasks_.end() || found->second->begun) return;
  Fail(queued.id, Cancelled(queued));
}

ExecutorCounts Executor::counts() const {
  const std::lock_guard lock(mutex_);
  ExecutorCounts counts = counts_;
  for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
    counts.queue_depth += counts.lanes[lane].waiting;
    counts.lanes[lane].wait_ms_estimated =
        static_cast<std::uint64_t>(schedule_.LaneMs(static_cast<Lane>(lane)));
  }
  return counts;
}

std::vector<CostEstimator::PassTime> Executor::ListPassTimes(const Snapshot& snapshot) const {
  const CostEstimator::Shape shape = MakeShape(snapshot, 1);
  const std::lock_guard lock(mutex_);
  return schedule_.estimator().ListPassTimes(shape);
}

double Executor::EstimateMs(const Snapshot& snapshot, std::uint32_t k,
                            std::uint32_t searches) const {
  const CostEstimator::Shape shape = MakeShape(snapshot, k);
  const std::lock_guard lock(mutex_);
  return schedule_.estimator().PassMs(shape, searches);
}

void Executor::ForgetTimes(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  schedule_.estimator().Forget(&snapshot);
}

void Executor::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  WakeDispatcher();
  const std::lock_guard lock(join_mutex_);
  if (dispatcher_.joinable()) dispatcher_.join();
  if (watcher_.joinable()) watcher_.join();
  completers_.End();
}

void Executor::WakeDispatcher() {
  {
    const std::lock_guard lock(mutex_);
    dispatch_wanted_ = true;
  }
  dispatch_wake_.notify_one();
}

void Executor::Dispatch() {
  base::NameThread("simile-batch");
  TaskList finished;
  std::unique_lock lock(mutex_);
  for (;;) {
    dispatch_wake_.wait(lock, [this] {
      if (leading_ || !dispatch_wanted_) return false;
      return stopping_ || (!schedule_.empty() && CanLead());
    });
    if (stopping_) break;
    assert(!leading_);
    leading_ = true;
    for (bool is_started = false; is_started || (CanLead() && !stopping_ && TakeSlice());) {
      lock.unlock();
      if (!is_started) StartSlice(running_);
      bool has_next = false;
      if (running_.started.on_device) {
        lock.lock();
        has_next = CanLead() && !stopping_ && runner_.outcome().fallback == nullptr && TakeNext();
        lock.unlock();
        if (has_next) StartSlice(next_);
      }
      RunSlice(has_next);
      lock.lock();
      while (running_.slice.runs_to_end && !runner_.outcome().ended && KeepRunning()) {
        lock.unlock();
        RunSlice(has_next);
        lock.lock();
      }
      FinishSlice(finished);
      while (!finished.empty()) completers_.Add(finished.TakeFirst());
      is_started = has_next;
      if (!has_next) continue;
      std::swap(running_, next_);
      yield_ = false;
    }
    runner_.FreeBuffers();
    leading_ = false;
    dispatch_wanted_ = !schedule_.empty() || stopping_;
  }
  StopWaiting();
  dispatch_ended_ = true;
  lock.unlock();
  watch_wake_.notify_one();
}

void Executor::WatchDeadlines() {
  base::NameThread("simile-deadline");
  std::unique_lock lock(mutex_);
  while (!dispatch_ended_) {
    const Clock::TimePoint now = clock_.Now();
    ExpireWaiting(now);
    if (next_expiry_ == Clock::TimePoint::max()) {
      watch_wake_.wait(lock);
    } else {
      watch_wake_.wait_for(lock, SleepUntil(next_expiry_, now));
    }
  }
}

bool Executor::CanLead() const { return !completers_.small_lags(); }

absl::Status Executor::Admit(QueuedTask& queued, Clock::TimePoint now) {
  if (stopping_) return Stopping();
  if (queued.large_reply && completers_.large_lags()) {
    return Refuse(queued, "too many large replies wait to be sent", LaneMs(queued));
  }
  const std::string obstacle = ObstacleTo(queued);
  // Small calls take all space that a full queue gets, so a large call would never get in. It waits
  // beside the queue instead: one in each lane. None waits there while queue_bytes_max is exceeded,
  // so that memory stays bounded.
  queued.large = TakesLargeShare(queued) && CountsOf(queued).large_waiting == 0 &&
                 counts_.queue_bytes <= options_.queue_bytes_max;
  if (!obstacle.empty() && !queued.large) return Refuse(queued, obstacle, LaneMs(queued));
  // Any call is accepted while nothing waits and no pass has more than a slice left. A wrong
  // estimate would otherwise refuse it for ever; running it corrects the estimate.
  if (queued.task->deadline == Clock::TimePoint::max() || schedule_.IsNearlyEmpty()) {
    return absl::OkStatus();
  }
  const double left_ms = Milliseconds(queued.task->deadline - now).count();
  const double answer_ms = kEstimateMargin * schedule_.AnswerMs(queued.request);
  if (answer_ms <= left_ms) return absl::OkStatus();
  return Refuse(queued,
                fmt::format("the answer would take about {} ms, including the calls before it, and "
                            "the deadline is in {} ms",
                            Whole(answer_ms), Whole(left_ms)),
                answer_ms - left_ms);
}

bool Executor::TakesLargeShare(const QueuedTask& queued) const {
  return queued.request.searches > std::max(1U, options_.queue_queries_max / kLargeCallDivisor) ||
         queued.bytes > options_.queue_bytes_max / kLargeCallDivisor;
}

std::string Executor::ObstacleTo(const QueuedTask& queued) const {
  const std::uint64_t waiting = QueriesInQueue();
  if (waiting + queued.request.searches > options_.queue_queries_max) {
    return fmt::format("{} queries wait already and the queue holds {}: no space for {} more",
                       base::Grouped(waiting), base::Grouped(options_.queue_queries_max),
                       base::Grouped(queued.request.searches));
  }
  if (counts_.queue_bytes + queued.bytes > options_.queue_bytes_max) {
    return fmt::format("the waiting calls take {} bytes, and the limit is {}: no space for {} more",
                       base::Grouped(counts_.queue_bytes), base::Grouped(options_.queue_bytes_max),
                       base::Grouped(queued.bytes));
  }
  return {};
}

absl::Status Executor::Refuse(const QueuedTask& queued, std::string_view why, double retry_ms) {
  if (!queued.task->is_measurement) counts_.rejected += queued.request.searches;
  const Milliseconds wait(std::clamp(retry_ms, kRetryMsMin, kRetryMsMax));
  return base::WithRetryAfter(base::Error(base::ErrorReason::kQueueFull, why),
                              std::chrono::round<std::chrono::milliseconds>(wait));
}

absl::Status Executor::Cancelled(const QueuedTask& queued) {
  counts_.cancelled += queued.request.searches;
  return base::Error(base::ErrorReason::kCancelled, "the caller gave up before the query was run");
}

absl::Status Executor::Expired(const QueuedTask& queued, Clock::TimePoint now) {
  counts_.expired += queued.request.searches;
  const std::uint64_t waited_us = Microseconds(now - queued.task->arrived_at);
  return base::OrOutOfMemory([&] {
    return base::Error(
        base::ErrorReason::kDeadlineExceeded,
        fmt::format("the deadline passed after {} ms in the queue; nothing was computed",
                    base::Grouped(waited_us / 1000)));
  });
}

double Executor::LaneMs(const QueuedTask& queued) const {
  return schedule_.LaneMs(queued.request.lane);
}

LaneCounts& Executor::CountsOf(const QueuedTask& queued) {
  return counts_.lanes[static_cast<std::size_t>(queued.request.lane)];
}

std::uint64_t Executor::QueriesInQueue() const {
  std::uint64_t queries = 0;
  for (const LaneCounts& lane : counts_.lanes) queries += lane.waiting - lane.large_waiting;
  return queries;
}

void Executor::CountWaiting(const QueuedTask& queued) {
  LaneCounts& lane = CountsOf(queued);
  lane.waiting += queued.request.searches;
  if (queued.large) lane.large_waiting += queued.request.searches;
}

void Executor::CountNotWaiting(const QueuedTask& queued) {
  LaneCounts& lane = CountsOf(queued);
  lane.waiting -= queued.request.searches;
  if (queued.large) lane.large_waiting -= queued.request.searches;
}

Executor::QueuedTaskPtr Executor::Remove(std::uint64_t id) {
  auto node = tasks_.extract(id);
  QueuedTaskPtr queued = std::move(node.mapped());
  schedule_.Remove(id);
  counts_.queue_bytes -= queued->bytes;
  if (queued->begun) {
    CountsOf(*queued).running -= queued->request.searches;
    std::erase(begun_, queued.get());
  } else {
    CountNotWaiting(*queued);
  }
  return queued;
}

void Executor::Fail(std::uint64_t id, absl::Status error) {
  QueuedTaskPtr queued = Remove(id);
  queued->answer = std::move(error);
  completers_.Add(std::move(queued));
}

void Executor::ExpireWaiting(Clock::TimePoint now) {
  if (now < next_expiry_) return;
  next_expiry_ = Clock::TimePoint::max();
  for (auto place = tasks_.begin(); place != tasks_.end();) {
    const auto& [id, queued] = *place++;
    if (queued->begun) continue;
    if (now < queued->task->deadline) {
      next_expiry_ = std::min(next_expiry_, queued->task->deadline);
      continue;
    }
    Fail(id, Expired(*queued, now));
  }
}

void Executor::StopWaiting() {
  runner_.DropAll();
  counts_.paused_bytes = 0;
  while (!tasks_.empty()) Fail(tasks_.begin()->first, Stopping());
}

bool Executor::TakeSlice() {
  const Clock::TimePoint now = clock_.Now();
  ExpireWaiting(now);
  GiveUpBegun();
  if (!MakeSpace()) return false;
  schedule_.Next(running_.slice);
  yield_ = false;
  BeginTasks(running_, now);
  return true;
}

bool Executor::TakeNext() {
  if (!schedule_.HasFullPass()) return false;
  ExpireWaiting(clock_.Now());
  GiveUpBegun();
  try {
    Reserve(next_);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!schedule_.NextFullPass(running_.slice, next_.slice)) return false;
  BeginTasks(next_, clock_.Now());
  return true;
}

void Executor::BeginTasks(ActiveSlice& active, Clock::TimePoint now) {
  active.tasks.clear();
  active.has_callers = false;
  for (const Schedule::Part& part : active.slice.parts) {
    QueuedTask& queued = *tasks_.find(part.id)->second;
    active.tasks.push_back(&queued);
    active.has_callers = active.has_callers || !queued.task->is_measurement;
    ++queued.slices_under_way;
    if (!queued.begun) Begin(queued, now);
  }
  if (active.has_callers && (active.slice.hard || active.slice.begins)) ++counts_.batches;
}

void Executor::Reserve(ActiveSlice& active) {
  const std::size_t most = tasks_.size();
  ReserveFor(most, active.slice.parts);
  ReserveFor(most, active.tasks);
  ReserveFor(most, begun_);
  ReserveFor(most, report_.queue_us);
  runner_.Reserve(most);
}

bool Executor::MakeSpace() {
  while (!schedule_.empty()) {
    try {
      Reserve(running_);
      return true;
    } catch (const std::bad_alloc&) {
      const QueuedTask& oldest = *tasks_.begin()->second;
      runner_.Drop(oldest.progress);
      counts_.paused_bytes = runner_.paused_bytes();
      Fail(oldest.id, base::OutOfMemory());
    }
  }
  return false;
}

void Executor::GiveUpBegun() {
  for (std::size_t i = 0; i < begun_.size();) {
    QueuedTask& queued = *begun_[i];
    absl::Status status = queued.progress.status;
    if (status.ok()) {
      status = base::OrOutOfMemory([&] { return CallContext(*queued.task, clock_).Check(); });
    }
    if (status.ok()) {
      ++i;
      continue;
    }
    if (queued.slices_under_way > 0) {
      queued.progress.status = std::move(status);
      schedule_.Remove(queued.id);
      ++i;
      continue;
    }
    runner_.Drop(queued.progress);
    Fail(queued.id, std::move(status));  // also removes it from begun_
  }
  runner_.DropEmptyGroups();
  counts_.paused_bytes = runner_.paused_bytes();
}

void Executor::Begin(QueuedTask& queued, Clock::TimePoint now) {
  CountNotWaiting(queued);
  CountsOf(queued).running += queued.request.searches;
  if (!queued.task->is_measurement) counts_.queries += queued.task->queries.size();
  queued.begun = true;
  queued.began_at = now;
  begun_.push_back(&queued);
}

bool Executor::KeepRunning() {
  bool any_left = false;
  for (QueuedTask* const queued : running_.tasks) {
    absl::Status& status = queued->progress.status;
    if (!status.ok()) continue;
    status = stopping_
                 ? Stopping()
                 : base::OrOutOfMemory([&] { return CallContext(*queued->task, clock_).Check(); });
    if (status.ok()) {
      any_left = true;
    } else {
      schedule_.Remove(queued->id);
      runner_.Drop(running_.started, queued->progress);
    }
  }
  yield_ = false;
  GiveUpBegun();  // of other slices
  return any_left;
}

void Executor::RunSlice(bool has_next) {
  const SliceRunner::Outcome& outcome =
      runner_.Run(running_.started, running_.slice, running_.tasks, yield_,
                  has_next ? &next_.started : nullptr);
  if (outcome.batch_size == 0 || !running_.has_callers || !observer_) return;
  report_.batch_size = outcome.batch_size;
  report_.compute_us = Microseconds(outcome.compute);
  report_.queue_us.clear();
  for (QueuedTask* const queued : running_.tasks) {
    if (std::exchange(queued->wait_reported, true) || queued->task->is_measurement) continue;
    report_.queue_us.push_back(Microseconds(queued->began_at - queued->task->arrived_at));
  }
  report_.backend =
      outcome.fallback != nullptr ? outcome.fallback->info.name : runner_.served_by().info.name;
  try {
    observer_(report_);
  } catch (const std::bad_alloc&) {
    // Without memory the histograms miss this slice.
  }
}

void Executor::FinishSlice(TaskList& finished) {
  runner_.RecordTimes(running_.tasks, running_.slice, schedule_.estimator());
  const SliceRunner::Outcome& outcome = runner_.outcome();
  const Clock::Duration took = running_.slice.runs_to_end ? outcome.compute : outcome.duration;
  schedule_.Charge(running_.slice, Milliseconds(took).count());
  for (QueuedTask* const queued : running_.tasks) {
    if (--queued->slices_under_way > 0 || !queued->progress.ended()) continue;
    // A task that was given up may still have queries in a paused pass.
    if (!queued->progress.status.ok()) runner_.Drop(queued->progress);
    queued->answer = base::OrOutOfMemory([&] { return runner_.BuildAnswer(*queued); });
    finished.Add(Remove(queued->id));
  }
  runner_.DropEmptyGroups();
  counts_.paused_bytes = runner_.paused_bytes();
}

}  // namespace simile::engine
