#include "engine/queue/executor.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::engine {
namespace {

// What a task counts as in the queue and in a batch: its searches. A query with several vectors
// needs one search for each.
std::uint32_t Weight(const SearchTask& task) {
  return static_cast<std::uint32_t>(std::max(task.queries.size(), task.vectors.row_count()));
}

absl::Status Stopping() {
  return base::Error(base::ErrorReason::kStopping, "the server is stopping");
}

// The real time to sleep until a moment of the injected clock. Bounded, because wait_for adds it to
// the present time, and the moment of "no deadline" would overflow.
Clock::Duration SleepUntil(Clock::TimePoint moment, Clock::TimePoint now) {
  constexpr Clock::Duration kLongest = std::chrono::hours(1);
  return moment - now < kLongest ? moment - now : kLongest;
}

}  // namespace

Executor::Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
                   ReadDeviceMemory read)
    : options_(options),
      served_by_(std::make_shared<const ServedBy>(std::move(served_by))),
      clock_(clock),
      observer_(std::move(observer)),
      read_device_memory_(std::move(read)),
      runner_(clock),
      dispatcher_([this] { Dispatch(); }),
      completer_([this] { Complete(); }) {}

Executor::~Executor() { Stop(); }

absl::Status Executor::Submit(TaskPtr task) {
  assert(task->snapshot != nullptr && task->done != nullptr && !task->queries.empty());
  const std::uint32_t query_count = Weight(*task);
  bool nearer_deadline = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kRunning) return Stopping();
    if (counts_.queue_depth + query_count > options_.queue_queries_max) {
      counts_.rejected += query_count;
      return QueueFull(query_count);
    }
    counts_.queue_depth += query_count;
    nearer_deadline = task->deadline < next_expiry_;
    if (nearer_deadline) next_expiry_ = task->deadline;
    waiting_.push_back(std::move(task));
  }
  dispatch_wake_.notify_one();
  if (nearer_deadline) complete_wake_.notify_one();
  return absl::OkStatus();
}

ExecutorCounts Executor::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Executor::Stop() { End(Phase::kStopping); }

void Executor::Drain() { End(Phase::kDraining); }

void Executor::End(Phase phase) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = std::max(phase_, phase);
  }
  dispatch_wake_.notify_one();
  const std::lock_guard lock(join_mutex_);
  if (dispatcher_.joinable()) dispatcher_.join();
  if (completer_.joinable()) completer_.join();
}

void Executor::Dispatch() {
  while (FormBatch()) {
    DropCancelled();
    if (!batch_.empty()) RunBatch();
  }
  {
    const std::lock_guard lock(mutex_);
    dispatch_ended_ = true;
  }
  complete_wake_.notify_one();
}

bool Executor::FormBatch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    dispatch_wake_.wait(lock, [this] {
      if (phase_ == Phase::kStopping) return true;
      if (waiting_.empty()) return phase_ == Phase::kDraining;
      return completing_queries_ < options_.queue_queries_max;
    });
    if (phase_ == Phase::kStopping) StopWaiting();
    ExpireWaiting(clock_.Now());
    if (!waiting_.empty()) break;
    if (phase_ != Phase::kRunning) return false;
  }

  waiting_view_.clear();
  for (const TaskPtr& task : waiting_) {
    waiting_view_.push_back({task->snapshot.get(), Weight(*task)});
  }
  ChooseBatch(waiting_view_, options_.batch_queries_max, taken_);
  for (const std::size_t index : taken_) {
    counts_.queue_depth -= Weight(*waiting_[index]);
    running_searches_ += Weight(*waiting_[index]);
    batch_.push_back(std::move(waiting_[index]));
  }
  std::erase(waiting_, nullptr);
  return true;
}

// Calls `cancelled` outside the mutex: it is the caller's code.
void Executor::DropCancelled() {
  for (TaskPtr& task : batch_) {
    if (!task->cancelled || !task->cancelled()) continue;
    const std::lock_guard lock(mutex_);
    counts_.cancelled += Weight(*task);
    running_searches_ -= Weight(*task);
    Finish(std::move(task), base::Error(base::ErrorReason::kCancelled,
                                        "the caller gave up before the query was run"));
  }
  std::erase(batch_, nullptr);
}

void Executor::RunBatch() {
  const Clock::TimePoint started_at = clock_.Now();
  ReadDeviceBytes();
  const auto finish = [&](std::size_t index) {
    auto answer = BuildAnswer(index, Microseconds(clock_.Now() - started_at));
    const std::lock_guard lock(mutex_);
    Finish(std::move(batch_[index]), std::move(answer));
  };
  CountBatch(started_at);
  const absl::Status status = runner_.Run(batch_, answers_, finish);
  const Clock::Duration duration = clock_.Now() - started_at;
  report_.compute_us = Microseconds(duration);
  {
    const std::lock_guard lock(mutex_);
    drain_rate_.AddBatch(std::exchange(running_searches_, 0), duration);
  }
  const FallbackBackend& fallback = answers_.fallback;
  report_.backend = fallback != nullptr ? fallback->info.name : served_by_->info.name;
  if (observer_) observer_(report_);
  for (std::size_t index = 0; index < batch_.size(); ++index) {
    if (batch_[index] == nullptr) continue;  // completed in an earlier round
    if (status.ok()) {
      finish(index);
    } else {
      const std::lock_guard lock(mutex_);
      Finish(std::move(batch_[index]), status);
    }
  }
  batch_.clear();
}

absl::StatusOr<SearchAnswer> Executor::BuildAnswer(std::size_t index, std::uint64_t compute_us) {
  auto& results = answers_.tasks[index];
  if (!results.ok()) return results.status();
  Execution execution;
  for (const QueryResult& result : *results) execution.Add(result.execution);
  const bool searched = !execution.engines.names().empty();
  if (!searched) execution.AddFallback(FallbackOf(*batch_[index]->snapshot));
  const auto& served_by = execution.fallback != nullptr ? execution.fallback : served_by_;
  if (!searched) {  // the one that would have
    execution.engines.Add(EngineOf(*batch_[index]->snapshot, *served_by));
  }
  return SearchAnswer{.results = *std::move(results),
                      .receipt = {.served_by = served_by,
                                  .engines = execution.engines.names(),
                                  .device_bytes = device_bytes_,
                                  .device_bytes_peak = device_bytes_peak_,
                                  .batch_size = report_.batch_size,
                                  .queue_us = report_.queue_us[index],
                                  .compute_us = compute_us,
                                  .cost = execution.cost}};
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

void Executor::CountBatch(Clock::TimePoint started_at) {
  report_.batch_size = 0;
  report_.queue_us.clear();
  for (const TaskPtr& task : batch_) {
    report_.batch_size += static_cast<std::uint32_t>(task->queries.size());
    report_.queue_us.push_back(Microseconds(started_at - task->arrived_at));
  }
  const std::lock_guard lock(mutex_);
  ++counts_.batches;
  counts_.queries += report_.batch_size;
}

void Executor::Complete() {
  std::vector<Finished> completing;
  std::unique_lock lock(mutex_);
  for (;;) {
    const Clock::TimePoint now = clock_.Now();
    ExpireWaiting(now);
    if (finished_.empty()) {
      if (dispatch_ended_) return;
      if (next_expiry_ == Clock::TimePoint::max()) {
        complete_wake_.wait(lock);
      } else {
        complete_wake_.wait_for(lock, SleepUntil(next_expiry_, now));
      }
      continue;
    }
    completing.swap(finished_);
    lock.unlock();
    std::uint64_t query_count = 0;
    for (Finished& finished : completing) {
      query_count += Weight(*finished.task);
      finished.task->done(std::move(finished.answer));
    }
    completing.clear();  // frees the tasks here and not between two passes
    lock.lock();
    completing_queries_ -= query_count;
    dispatch_wake_.notify_one();
  }
}

void Executor::ExpireWaiting(Clock::TimePoint now) {
  if (now < next_expiry_) return;
  next_expiry_ = Clock::TimePoint::max();
  for (TaskPtr& task : waiting_) {
    if (now < task->deadline) {
      next_expiry_ = std::min(next_expiry_, task->deadline);
      continue;
    }
    const std::uint32_t query_count = Weight(*task);
    counts_.expired += query_count;
    counts_.queue_depth -= query_count;
    const std::uint64_t waited_us = Microseconds(now - task->arrived_at);
    Finish(std::move(task),
           base::Error(
               base::ErrorReason::kDeadlineExceeded,
               fmt::format("the deadline passed after {} ms in the queue; nothing was computed",
                           base::Grouped(waited_us / 1000))));
  }
  std::erase(waiting_, nullptr);
}

void Executor::StopWaiting() {
  for (TaskPtr& task : waiting_) Finish(std::move(task), Stopping());
  waiting_.clear();
  counts_.queue_depth = 0;
}

absl::Status Executor::QueueFull(std::uint32_t query_count) const {
  return base::WithRetryAfter(
      base::Error(
          base::ErrorReason::kQueueFull,
          fmt::format("{} queries wait already and the queue holds {}: no space for {} more",
                      base::Grouped(counts_.queue_depth), base::Grouped(options_.queue_queries_max),
                      base::Grouped(query_count))),
      drain_rate_.TimeFor(running_searches_ + counts_.queue_depth));
}

void Executor::Finish(TaskPtr task, absl::StatusOr<SearchAnswer> answer) {
  completing_queries_ += Weight(*task);
  finished_.push_back({std::move(task), std::move(answer)});
  complete_wake_.notify_one();
}

}  // namespace simile::engine
