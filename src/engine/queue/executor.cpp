#include "engine/queue/executor.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "engine/queue/task_cost.h"
#include "engine/search/call_context.h"

namespace simile::engine {
namespace {

// Building and sending a reply of this size takes some 100 us: as long as several small ones.
constexpr std::uint64_t kLargeReplyBytes = 256U << 10;

// A call that takes more than this part of the queue is large.
constexpr std::uint32_t kLargeShare = 16;

// The bounds of the time after which a refused caller is told to try again.
constexpr double kRetryMsMin = 10;
constexpr double kRetryMsMax = 2'000;

using Milliseconds = std::chrono::duration<double, std::milli>;

absl::Status Stopping() {
  return base::Error(base::ErrorReason::kStopping, "the server is stopping");
}

std::string Whole(double ms) {
  return base::Grouped(static_cast<std::uint64_t>(std::clamp(ms, 0.0, 1e12)));
}

// The real time to sleep until a moment of the injected clock. Bounded, because wait_for adds it to
// the present time, and the moment of "no deadline" would overflow.
Clock::Duration SleepUntil(Clock::TimePoint moment, Clock::TimePoint now) {
  constexpr Clock::Duration kLongest = std::chrono::hours(1);
  return moment - now < kLongest ? moment - now : kLongest;
}

Schedule::Request RequestOf(const SearchTask& task, const CostEstimator& estimator) {
  const std::uint64_t values = std::uint64_t{task.snapshot->row_count()} * task.snapshot->dim();
  const bool hard = IsHard(task);
  return {.lane = LaneOf(task),
          .hard = hard,
          .shape = {task.snapshot.get(), values},
          .searches = SearchesOf(task),
          .work_ms = hard ? estimator.ScoresMs(ProductsOf(task)) : 0};
}

}  // namespace

Executor::Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
                   ReadDeviceMemory read)
    : options_(options),
      served_by_(std::make_shared<const ServedBy>(std::move(served_by))),
      clock_(clock),
      observer_(std::move(observer)),
      read_device_memory_(std::move(read)),
      schedule_({.batch_searches_max = options.batch_queries_max}),
      completers_(options.completers, options.queue_queries_max, options.queue_bytes_max,
                  [this] { WakeDispatcher(); }),
      dispatcher_([this] { Dispatch(); }),
      watcher_([this] { WatchDeadlines(); }) {}

Executor::~Executor() { Stop(); }

absl::Status Executor::Submit(std::unique_ptr<SearchTask> task, Wake wake) {
  assert(task->snapshot != nullptr && task->done != nullptr && !task->queries.empty());
  auto queued = std::make_unique<QueuedTask>();
  queued->task = std::move(task);
  queued->progress.task = queued->task.get();
  queued->query_count = SearchesOf(*queued->task);
  queued->bytes = BytesOf(*queued->task);
  queued->large_reply = queued->task->reply_bytes_estimate >= kLargeReplyBytes;
  // Before it is queued: from then on it may be answered, and freed, at any time.
  queued->on_cancel.emplace(queued->task->cancelled, [this, raw = queued.get()] { Cancel(*raw); });
  bool nearer_deadline = false;
  {
    const std::lock_guard lock(mutex_);
    queued->request = RequestOf(*queued->task, schedule_.estimator());
    if (absl::Status status = Admit(*queued, clock_.Now()); !status.ok()) return status;
    const std::uint64_t id = next_id_++;
    queued->id = id;
    CountWaiting(*queued);
    counts_.queue_bytes += queued->bytes;
    schedule_.Add(id, queued->request);
    if (leading_ && queued->request.lane < slice_.lane) yield_ = true;
    nearer_deadline = queued->task->deadline < next_expiry_;
    if (nearer_deadline) next_expiry_ = queued->task->deadline;
    const bool cancelled = queued->task->cancelled.stop_requested();
    tasks_.emplace(id, std::move(queued));
    if (cancelled) CancelWaiting(id);       // before it was queued, Cancel did not find it
    wake = leading_ ? Wake::kLater : wake;  // the thread that leads will find it
  }
  if (wake == Wake::kNow) WakeDispatcher();
  if (nearer_deadline) watch_wake_.notify_one();
  return absl::OkStatus();
}

bool Executor::RunHere() {
  std::vector<Finished> finished;
  {
    std::unique_lock lock(mutex_);
    if (schedule_.empty() || leading_) return false;
    if (!CanLead() || phase_ != Phase::kRunning || !schedule_.IsSmall(kRunHereMs)) {
      lock.unlock();
      WakeDispatcher();
      return false;
    }
    leading_ = true;
    double ms = 0;
    while (schedule_.IsSmall(kRunHereMs - ms) && TakeSlice()) {
      ms += slice_.estimated_ms;
      lock.unlock();
      RunSlice();
      lock.lock();
      FinishSlice(finished);
    }
    leading_ = false;
    const bool more = !schedule_.empty() || phase_ != Phase::kRunning;
    lock.unlock();
    if (more) WakeDispatcher();
  }
  for (Finished& answer : finished) {
    if (answer.is_large()) {
      completers_.Add(std::move(answer));
    } else {
      answer.HandOut();
    }
  }
  return true;
}

void Executor::Cancel(const QueuedTask& queued) {
  const std::lock_guard lock(mutex_);
  CancelWaiting(queued.id);
}

// The thread that leads gives up what has begun, between two slices.
void Executor::CancelWaiting(std::uint64_t id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second->begun) return;
  counts_.cancelled += found->second->query_count;
  completers_.Add({Remove(id), base::Error(base::ErrorReason::kCancelled,
                                           "the caller gave up before the query was run")});
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

void Executor::Stop() { End(Phase::kStopping); }

void Executor::Drain() { End(Phase::kDraining); }

void Executor::End(Phase phase) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = std::max(phase_, phase);
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
  std::vector<Finished> finished;
  std::unique_lock lock(mutex_);
  for (;;) {
    dispatch_wake_.wait(lock, [this] {
      if (leading_ || !dispatch_wanted_) return false;
      if (phase_ == Phase::kStopping) return true;
      return schedule_.empty() ? phase_ == Phase::kDraining : CanLead();
    });
    if (phase_ == Phase::kStopping) StopWaiting();
    if (schedule_.empty() && phase_ != Phase::kRunning) break;
    leading_ = true;
    while (CanLead() && phase_ != Phase::kStopping && TakeSlice()) {
      lock.unlock();
      RunSlice();
      lock.lock();
      FinishSlice(finished);
      for (Finished& answer : finished) completers_.Add(std::move(answer));
      finished.clear();
    }
    leading_ = false;
    dispatch_wanted_ = !schedule_.empty() || phase_ != Phase::kRunning;
  }
  dispatch_ended_ = true;
  lock.unlock();
  watch_wake_.notify_one();
}

void Executor::WatchDeadlines() {
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
  if (phase_ != Phase::kRunning) return Stopping();
  if (queued.large_reply && completers_.large_lags()) {
    return Refuse(queued, "too many large replies wait to be sent", LaneMs(queued));
  }
  const std::string obstacle = ObstacleTo(queued);
  // Small calls take whatever space a full queue gets, so a large one would be kept out for ever.
  // It waits beside the queue: one in each lane, so that memory stays bounded.
  queued.oversize = IsLarge(queued) && CountsOf(queued).oversize_waiting == 0;
  if (!obstacle.empty() && !queued.oversize) return Refuse(queued, obstacle, LaneMs(queued));
  // An estimate may be wrong, so an idle device tries whatever comes, and learns.
  if (queued.task->deadline == Clock::TimePoint::max() || schedule_.empty()) {
    return absl::OkStatus();
  }
  const double left_ms = Milliseconds(queued.task->deadline - now).count();
  const double answer_ms = schedule_.AnswerMs(queued.request);
  if (answer_ms <= left_ms) return absl::OkStatus();
  return Refuse(queued,
                fmt::format("the answer would take about {} ms, with what waits before it, and the "
                            "deadline is in {} ms",
                            Whole(answer_ms), Whole(left_ms)),
                answer_ms - left_ms);
}

bool Executor::IsLarge(const QueuedTask& queued) const {
  return queued.query_count > std::max(1U, options_.queue_queries_max / kLargeShare) ||
         queued.bytes > options_.queue_bytes_max / kLargeShare;
}

std::string Executor::ObstacleTo(const QueuedTask& queued) const {
  const std::uint64_t waiting = QueriesInQueue();
  if (waiting + queued.query_count > options_.queue_queries_max) {
    return fmt::format("{} queries wait already and the queue holds {}: no space for {} more",
                       base::Grouped(waiting), base::Grouped(options_.queue_queries_max),
                       base::Grouped(queued.query_count));
  }
  if (counts_.queue_bytes + queued.bytes > options_.queue_bytes_max) {
    return fmt::format("the calls that wait take {} bytes and may take {}: no space for {} more",
                       base::Grouped(counts_.queue_bytes), base::Grouped(options_.queue_bytes_max),
                       base::Grouped(queued.bytes));
  }
  return {};
}

absl::Status Executor::Refuse(const QueuedTask& queued, std::string_view why, double retry_ms) {
  counts_.rejected += queued.query_count;
  const Milliseconds wait(std::clamp(retry_ms, kRetryMsMin, kRetryMsMax));
  return base::WithRetryAfter(base::Error(base::ErrorReason::kQueueFull, why),
                              std::chrono::round<std::chrono::milliseconds>(wait));
}

double Executor::LaneMs(const QueuedTask& queued) const {
  return schedule_.LaneMs(queued.request.lane);
}

LaneCounts& Executor::CountsOf(const QueuedTask& queued) {
  return counts_.lanes[static_cast<std::size_t>(queued.request.lane)];
}

std::uint64_t Executor::QueriesInQueue() const {
  std::uint64_t queries = 0;
  for (const LaneCounts& lane : counts_.lanes) queries += lane.waiting - lane.oversize_waiting;
  return queries;
}

void Executor::CountWaiting(const QueuedTask& queued) {
  LaneCounts& lane = CountsOf(queued);
  lane.waiting += queued.query_count;
  if (queued.oversize) lane.oversize_waiting += queued.query_count;
}

void Executor::CountNotWaiting(const QueuedTask& queued) {
  LaneCounts& lane = CountsOf(queued);
  lane.waiting -= queued.query_count;
  if (queued.oversize) lane.oversize_waiting -= queued.query_count;
}

Executor::QueuedTaskPtr Executor::Remove(std::uint64_t id) {
  auto node = tasks_.extract(id);
  QueuedTaskPtr queued = std::move(node.mapped());
  schedule_.Remove(id);
  counts_.queue_bytes -= queued->bytes;
  if (queued->begun) {
    CountsOf(*queued).running -= queued->query_count;
    std::erase(begun_, queued.get());
  } else {
    CountNotWaiting(*queued);
  }
  return queued;
}

void Executor::ExpireWaiting(Clock::TimePoint now) {
  if (now < next_expiry_) return;
  next_expiry_ = Clock::TimePoint::max();
  std::vector<std::uint64_t> expired;
  for (const auto& [id, queued] : tasks_) {
    if (queued->begun) continue;
    if (now < queued->task->deadline) {
      next_expiry_ = std::min(next_expiry_, queued->task->deadline);
    } else {
      expired.push_back(id);
    }
  }
  for (const std::uint64_t id : expired) {
    QueuedTaskPtr queued = Remove(id);
    counts_.expired += queued->query_count;
    const std::uint64_t waited_us = Microseconds(now - queued->task->arrived_at);
    completers_.Add(
        {std::move(queued),
         base::Error(base::ErrorReason::kDeadlineExceeded,
                     fmt::format("the deadline passed after {} ms in the queue; nothing was "
                                 "computed",
                                 base::Grouped(waited_us / 1000)))});
  }
}

void Executor::StopWaiting() {
  hard_groups_.clear();
  while (!tasks_.empty()) completers_.Add({Remove(tasks_.begin()->first), Stopping()});
}

bool Executor::TakeSlice() {
  const Clock::TimePoint now = clock_.Now();
  ExpireWaiting(now);
  GiveUpBegun();
  if (schedule_.empty()) return false;
  schedule_.Next(slice_);
  yield_ = false;
  ++counts_.batches;
  running_.clear();
  report_.queue_us.clear();
  for (const Schedule::Part& part : slice_.parts) {
    QueuedTask& queued = *tasks_.find(part.id)->second;
    running_.push_back(&queued);
    if (!queued.begun) Begin(queued, now);
  }
  return true;
}

void Executor::GiveUpBegun() {
  const std::vector<QueuedTask*> begun = begun_;
  for (QueuedTask* const queued : begun) {
    absl::Status status = CallContext(*queued->task, clock_).Check();
    if (status.ok()) continue;
    for (HardGroup& group : hard_groups_) group.queries.Drop(queued->progress);
    completers_.Add({Remove(queued->id), std::move(status)});
  }
  hard_groups_.remove_if([](const HardGroup& group) { return group.queries.empty(); });
}

void Executor::Begin(QueuedTask& queued, Clock::TimePoint now) {
  CountNotWaiting(queued);
  CountsOf(queued).running += queued.query_count;
  counts_.queries += queued.task->queries.size();
  queued.begun = true;
  queued.began_at = now;
  begun_.push_back(&queued);
  report_.queue_us.push_back(Microseconds(now - queued.task->arrived_at));
}

void Executor::RunSlice() {
  slice_began_at_ = clock_.Now();
  ReadDeviceBytes();
  for (QueuedTask* const queued : running_) {
    TaskProgress& progress = queued->progress;
    try {
      if (!progress.begun()) progress.results.resize(queued->task->queries.size());
    } catch (const std::bad_alloc&) {
      progress.status = NoMemoryFor("answer");
    }
  }
  hard_report_ = {};
  const FallbackBackend fallback = slice_.hard ? RunHardSlice() : RunPlainSlice();
  slice_duration_ = clock_.Now() - slice_began_at_;
  for (QueuedTask* const queued : running_) queued->compute += slice_duration_;
  if (report_.batch_size == 0 || !observer_) return;
  report_.compute_us = Microseconds(slice_duration_);
  report_.backend = fallback != nullptr ? fallback->info.name : served_by_->info.name;
  observer_(report_);
}

FallbackBackend Executor::RunPlainSlice() {
  parts_.clear();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    TaskProgress& progress = running_[i]->progress;
    if (progress.status.ok()) parts_.push_back({&progress, slice_.parts[i].searches});
  }
  report_.batch_size = slice_.searches;
  pass_succeeded_ = !parts_.empty() && plain_pass_.Run(parts_).ok();
  return pass_succeeded_ ? workspace_.result.fallback() : nullptr;
}

FallbackBackend Executor::RunHardSlice() {
  constexpr auto kSlice = std::chrono::duration_cast<Clock::Duration>(Milliseconds(kSliceMs));
  hard_tasks_.clear();
  for (QueuedTask* const queued : running_) {
    if (queued->progress.status.ok()) hard_tasks_.push_back(&queued->progress);
  }
  HardQueriesOfSlice().RunSlice(
      hard_tasks_, {slice_began_at_ + kSlice, kSlice, slice_.searches, yield_}, hard_report_);
  report_.batch_size = hard_report_.query_count;
  return hard_report_.fallback;
}

HardQueries& Executor::HardQueriesOfSlice() {
  for (HardGroup& group : hard_groups_) {
    if (group.lane == slice_.lane && group.snapshot == slice_.shape.snapshot) return group.queries;
  }
  return hard_groups_
      .emplace_back(slice_.lane, running_.front()->task->snapshot, workspace_, clock_)
      .queries;
}

void Executor::FinishSlice(std::vector<Finished>& finished) {
  CostEstimator& estimator = schedule_.estimator();
  const double slice_ms = Milliseconds(slice_duration_).count();
  if (!slice_.hard && pass_succeeded_) {
    estimator.AddPass(slice_.shape, slice_.searches, slice_ms);
  }
  for (const HardQueries::SearchTime& search : hard_report_.searches) {
    estimator.AddPass(slice_.shape, search.searches, Milliseconds(search.duration).count());
  }
  const std::size_t dim = running_.front()->task->snapshot->dim();
  estimator.AddScores(static_cast<double>(hard_report_.rows_scored * dim),
                      Milliseconds(hard_report_.work).count());
  schedule_.Charge(slice_, slice_ms);
  hard_groups_.remove_if([](const HardGroup& group) { return group.queries.empty(); });
  for (QueuedTask* const queued : running_) {
    if (!queued->progress.ended()) continue;
    absl::StatusOr<SearchAnswer> answer = BuildAnswer(*queued);
    finished.push_back({Remove(queued->id), std::move(answer)});
  }
}

void Executor::ReadDeviceBytes() {
  if (!read_device_memory_) return;
  device_bytes_ = 0;
  device_bytes_peak_ = 0;
  for (const DeviceMemory& memory : read_device_memory_()) {
    device_bytes_ += memory.bytes;
    device_bytes_peak_ += memory.peak_bytes;
  }
}

absl::StatusOr<SearchAnswer> Executor::BuildAnswer(QueuedTask& queued) {
  TaskProgress& progress = queued.progress;
  if (!progress.status.ok()) return progress.status;
  const Snapshot& snapshot = *queued.task->snapshot;
  Execution execution;
  for (const QueryResult& result : progress.results) execution.Add(result.execution);
  const bool searched = !execution.engines.names().empty();
  if (!searched) execution.AddFallback(FallbackOf(snapshot));
  const auto& served_by = execution.fallback != nullptr ? execution.fallback : served_by_;
  if (!searched) execution.engines.Add(EngineOf(snapshot, *served_by));  // the one that would have
  return SearchAnswer{
      .results = std::move(progress.results),
      .receipt = {.served_by = served_by,
                  .engines = execution.engines.names(),
                  .device_bytes = device_bytes_,
                  .device_bytes_peak = device_bytes_peak_,
                  .batch_size = std::max(1U, progress.batch_size),
                  .queue_us = Microseconds(queued.began_at - queued.task->arrived_at),
                  .compute_us = Microseconds(queued.compute),
                  .cost = execution.cost}};
}

}  // namespace simile::engine
