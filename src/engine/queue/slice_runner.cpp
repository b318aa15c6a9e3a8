#include "engine/queue/slice_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <optional>

#include <absl/cleanup/cleanup.h>

#include "base/error_detail.h"
#include "engine/queue/schedule.h"

namespace simile::engine {
namespace {

// The device's time of a task that asked for it.
std::optional<std::uint64_t> DeviceMicroseconds(const QueuedTask& queued) {
  if (!queued.task->time_device || !queued.device_time.measured) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(queued.device_time.microseconds));
}

constexpr auto kSlice = std::chrono::duration_cast<Clock::Duration>(Milliseconds(kSliceMs));
// A slice runs at least this long: waking the threads of a device takes 20 to 60 us.
constexpr std::chrono::microseconds kSliceMin{1'000};
// The shortest slice that leaves a thread idle.
constexpr std::chrono::microseconds kSliceMinWithIdleThread{500};
// The number of ended passes whose buffers are kept.
constexpr std::size_t kIdlePasses = 2;
// Bulk passes leave one thread idle for this long after each slice of another lane. Otherwise a
// single query waits for a processor three times: to be read, to be searched and to be sent
// (docs/benchmarks/serving.md, "An export beside single queries").
constexpr auto kIdleThreadTime = std::chrono::seconds(1);

class SliceTurn final : public Turn {
 public:
  SliceTurn(const Clock& clock, Clock::TimePoint end, bool leaves_one_thread,
            const std::atomic<bool>& yield)
      : clock_(clock),
        least_(clock.Now() + (leaves_one_thread ? kSliceMinWithIdleThread : kSliceMin)),
        end_(end),
        leaves_one_thread_(leaves_one_thread),
        yield_(yield) {}

  bool IsOver() const override {
    const Clock::TimePoint now = clock_.Now();
    return now >= end_ || (now >= least_ && yield_);
  }
  bool LeavesOneThread() const override { return leaves_one_thread_; }

 private:
  const Clock& clock_;
  const Clock::TimePoint least_;
  const Clock::TimePoint end_;
  const bool leaves_one_thread_;
  const std::atomic<bool>& yield_;
};

}  // namespace

SliceRunner::SliceRunner(std::shared_ptr<const ServedBy> served_by, const Clock& clock,
                         ReadDeviceMemory read)
    : served_by_(std::move(served_by)),
      searches_on_host_(served_by_->info.name == "cpu"),
      clock_(clock),
      read_device_memory_(std::move(read)) {}

void SliceRunner::Reserve(std::size_t task_count) {
  ReserveFor(task_count, parts_);
  ReserveFor(task_count, hard_tasks_);
}

SliceRunner::StartedSlice SliceRunner::Start(const Schedule::Slice& slice,
                                             std::span<QueuedTask* const> tasks) {
  StartedSlice started;
  started.at = clock_.Now();
  started.estimated_ms = slice.estimated_ms;
  ReadDeviceBytes();
  for (QueuedTask* const queued : tasks) {
    TaskProgress& progress = queued->progress;
    if (progress.begun() || !progress.status.ok()) continue;
    progress.status = base::OrOutOfMemory([&] {
      progress.results.resize(queued->task->queries.size());
      return absl::OkStatus();
    });
  }
  if (slice.lane != Lane::kBulk) idle_thread_until_ = started.at + kIdleThreadTime;
  if (slice.hard) return started;
  started.pass = slice.begins ? BeginPass(slice, tasks) : FindPass(slice);
  if (!slice.begins || started.pass == nullptr) return started;
  started.on_device = started.pass->pass.Start();
  if (!started.pass->pass.under_way()) started.pass = nullptr;  // no memory to begin it
  return started;
}

const SliceRunner::Outcome& SliceRunner::Run(const StartedSlice& started,
                                             const Schedule::Slice& slice,
                                             std::span<QueuedTask* const> tasks,
                                             const std::atomic<bool>& yield, StartedSlice* next) {
  const Clock::TimePoint device_was_free = std::max(started.at, ended_at_);
  hard_report_ = {};
  outcome_ = {};
  device_time_ = {};
  const bool timed = std::ranges::any_of(
      tasks, [](const QueuedTask* queued) { return queued->task->time_device; });
  workspace_.search.set_device_time(timed ? &device_time_ : nullptr);
  slice.hard ? RunHard(slice, tasks, yield) : RunPlain(started, slice, tasks, yield);
  ended_at_ = clock_.Now();
  outcome_.duration = ended_at_ - device_was_free;
  const bool is_first = started.pass != nullptr && started.pass->took == Clock::Duration::zero();
  if (started.done_before && is_first) outcome_.duration += *started.done_before;
  if (next != nullptr && next->on_device && !next->done_before && next->pass->pass.HasEnded()) {
    // This slice waited for both passes, so a part of its duration belongs to the next pass.
    next->done_before =
        std::min(outcome_.duration,
                 std::chrono::duration_cast<Clock::Duration>(Milliseconds(next->estimated_ms)));
    outcome_.duration -= *next->done_before;
    pass_is_typical_ = false;
  }
  if (slice.hard) {
    outcome_.compute = outcome_.duration;
  } else if (started.pass != nullptr) {
    started.pass->took += outcome_.duration;
    outcome_.compute = started.pass->took;
  }
  KeepEndedPasses();
  for (QueuedTask* const queued : tasks) {
    if (!std::exchange(queued->progress.in_slice, false)) continue;
    const Clock::TimePoint from = started.on_device ? started.at : device_was_free;
    queued->compute += ended_at_ - std::max(from, queued->computed_until);
    queued->computed_until = ended_at_;
    if (device_time_.measured) queued->device_time.Add(device_time_.microseconds);
  }
  return outcome_;
}

void SliceRunner::RunPlain(const StartedSlice& started, const Schedule::Slice& slice,
                           std::span<QueuedTask* const> tasks, const std::atomic<bool>& yield) {
  pass_succeeded_ = false;
  if (RunningPass* const running = started.pass; running != nullptr) {
    const bool is_measured = std::ranges::any_of(
        tasks, [](const QueuedTask* queued) { return queued->task->is_measurement; });
    const bool leaves_one_thread = searches_on_host_ && slice.lane == Lane::kBulk && !is_measured &&
                                   clock_.Now() < idle_thread_until_;
    running->left_thread_idle = running->left_thread_idle || leaves_one_thread;
    const Clock::TimePoint end = clock_.Now() + kSlice;
    const absl::StatusOr<bool> ended =
        running->pass.Advance(SliceTurn(clock_, end, leaves_one_thread, yield));
    outcome_.ended = !ended.ok() || *ended;
    if (!outcome_.ended) return;
    if (ended.ok()) outcome_.fallback = running->pass.fallback();
    pass_succeeded_ = ended.ok();
    pass_is_typical_ = !running->left_thread_idle && !started.done_before;
  }
  outcome_.batch_size = slice.searches;
}

SliceRunner::RunningPass* SliceRunner::FindPass(const Schedule::Slice& slice) {
  for (RunningPass& pass : passes_) {
    if (pass.lane == slice.lane && pass.large == slice.large && pass.shape.IsLike(slice.shape)) {
      return &pass;
    }
  }
  return nullptr;
}

SliceRunner::RunningPass* SliceRunner::BeginPass(const Schedule::Slice& slice,
                                                 std::span<QueuedTask* const> tasks) {
  parts_.clear();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    TaskProgress& progress = tasks[i]->progress;
    if (progress.status.ok()) {
      parts_.push_back({&progress, tasks[i]->task, slice.parts[i].searches});
    }
  }
  const absl::Cleanup let_go = [this] { parts_.clear(); };
  if (parts_.empty()) return nullptr;
  try {
    if (idle_passes_.empty()) idle_passes_.emplace_back();
    RunningPass& running = idle_passes_.front();
    running.lane = slice.lane;
    running.large = slice.large;
    running.shape = slice.shape;
    running.took = {};
    running.left_thread_idle = false;
    const bool timed = std::ranges::any_of(
        parts_, [](const PlainPass::Part& part) { return part.task->task->time_device; });
    running.pass.Begin(parts_, timed ? &device_time_ : nullptr);
    passes_.splice(passes_.end(), idle_passes_, idle_passes_.begin());
    return &passes_.back();
  } catch (const std::bad_alloc&) {
    for (const PlainPass::Part& part : parts_) {
      part.task->status = base::OutOfMemory();
      part.task->in_slice = true;
    }
    return nullptr;
  }
}

void SliceRunner::KeepEndedPasses() {
  for (auto pass = passes_.begin(); pass != passes_.end();) {
    const auto here = pass++;
    if (here->pass.under_way()) continue;
    if (idle_passes_.size() < kIdlePasses) {
      idle_passes_.splice(idle_passes_.begin(), passes_, here);
    } else {
      passes_.erase(here);
    }
  }
}

std::uint64_t SliceRunner::paused_bytes() const {
  std::uint64_t bytes = 0;
  for (const RunningPass& running : passes_) bytes += running.pass.bytes();
  return bytes;
}

void SliceRunner::RunHard(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks,
                          const std::atomic<bool>& yield) {
  hard_tasks_.clear();
  for (QueuedTask* const queued : tasks) {
    if (queued->progress.status.ok()) hard_tasks_.push_back(&queued->progress);
  }
  try {
    UseHardQueries(slice, tasks.front()->task->snapshot)
        .RunSlice(hard_tasks_,
                  {.end = clock_.Now() + kSlice,
                   .length = kSlice,
                   .searches_max = slice.searches,
                   .yield = yield},
                  hard_report_);
  } catch (const std::bad_alloc&) {
    // The memory that the tasks share failed. A query that lacks memory of its own ends only its
    // task.
    for (TaskProgress* const task : hard_tasks_) {
      task->status = base::OutOfMemory();
      Drop(*task);
    }
  }
  outcome_.batch_size = hard_report_.query_count;
  outcome_.fallback = hard_report_.fallback;
}

HardQueries& SliceRunner::UseHardQueries(const Schedule::Slice& slice,
                                         const SnapshotPtr& snapshot) {
  for (HardGroup& group : hard_groups_) {
    if (group.lane == slice.lane && group.shape.IsLike(slice.shape)) return group.queries;
  }
  return hard_groups_.emplace_back(slice.lane, slice.shape, snapshot, workspace_, clock_).queries;
}

void SliceRunner::RecordTimes(std::span<QueuedTask* const> tasks, Schedule::Slice& slice,
                              CostEstimator& estimator) const {
  if (!slice.hard) {
    slice.ends = outcome_.ended;
    if (!pass_succeeded_) return;
    if (pass_is_typical_) {
      estimator.AddPass(slice.shape, slice.searches, Milliseconds(outcome_.compute).count());
    } else {
      estimator.AddPassSize(slice.shape, slice.searches);
    }
    return;
  }
  for (const HardQueries::SearchTime& search : hard_report_.searches) {
    CostEstimator::Shape shape = slice.shape;  // lists of later rounds are longer
    shape.k_class =
        CostEstimator::ToKClass(search.list_max, tasks.front()->task->snapshot->row_count());
    estimator.AddPass(shape, search.searches, Milliseconds(search.duration).count());
  }
  estimator.AddScores(static_cast<double>(hard_report_.products),
                      Milliseconds(hard_report_.scoring).count());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskProgress& progress = tasks[i]->progress;
    slice.parts[i].searches_done = progress.searches_in_slice;
    slice.parts[i].work_done_ms = Milliseconds(progress.work_in_slice).count();
  }
}

void SliceRunner::Drop(const TaskProgress& task) {
  for (HardGroup& group : hard_groups_) group.queries.Drop(task);
  for (RunningPass& running : passes_) running.pass.Drop(task);
  KeepEndedPasses();
}

void SliceRunner::Drop(const StartedSlice& started, const TaskProgress& task) {
  started.pass->pass.Drop(task);
  KeepEndedPasses();
}

void SliceRunner::DropAll() {
  hard_groups_.clear();
  for (RunningPass& running : passes_) running.pass.End();
  KeepEndedPasses();
}

void SliceRunner::DropEmptyGroups() {
  hard_groups_.remove_if([](const HardGroup& group) { return group.queries.empty(); });
}

void SliceRunner::FreeBuffers() {
  workspace_.FreeBuffers();
  for (RunningPass& idle : idle_passes_) idle.pass.FreeBuffers();
}

void SliceRunner::ReadDeviceBytes() {
  if (!read_device_memory_) return;
  std::vector<DeviceMemory> read;
  try {
    read = read_device_memory_();
  } catch (const std::bad_alloc&) {
    return;  // the values of the previous read stay
  }
  device_bytes_ = 0;
  device_bytes_peak_ = 0;
  for (const DeviceMemory& memory : read) {
    device_bytes_ += memory.bytes;
    device_bytes_peak_ += memory.peak_bytes;
  }
}

absl::StatusOr<SearchAnswer> SliceRunner::BuildAnswer(QueuedTask& queued) const {
  TaskProgress& progress = queued.progress;
  if (!progress.status.ok()) return progress.status;
  const Snapshot& snapshot = *queued.task->snapshot;
  Execution execution;
  for (const QueryResult& result : progress.results) execution.Add(result.execution);
  const bool searched = !execution.engines.names().empty();
  if (!searched) execution.AddFallback(FindFallback(snapshot));
  const auto& served_by = execution.fallback != nullptr ? execution.fallback : served_by_;
  if (!searched)
    execution.engines.Add(FindEngine(snapshot, *served_by));  // the engine that would have answered
  return SearchAnswer{
      .results = std::move(progress.results),
      .receipt = {.served_by = served_by,
                  .engines = execution.engines.names(),
                  .device_bytes = device_bytes_,
                  .device_bytes_peak = device_bytes_peak_,
                  .batch_size = std::max(1U, progress.batch_size),
                  .queue_us = Microseconds(queued.began_at - queued.task->arrived_at),
                  .compute_us = Microseconds(queued.compute),
                  .device_us = DeviceMicroseconds(queued),
                  .cost = execution.cost}};
}

observe::Receipt SliceRunner::ReceiptWithoutSearch(const Snapshot& snapshot) const {
  observe::Receipt receipt;
  receipt.served_by = FindFallback(snapshot);
  if (receipt.served_by == nullptr) receipt.served_by = served_by_;
  receipt.engines.push_back(FindEngine(snapshot, *receipt.served_by));
  return receipt;
}

}  // namespace simile::engine
