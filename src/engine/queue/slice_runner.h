#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/queue/queued_task.h"
#include "engine/queue/schedule.h"
#include "engine/search/hard_queries.h"
#include "engine/search/plain_pass.h"
#include "engine/search/search_workspace.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/query.h"
#include "simile/served_by.h"

namespace simile::engine {

// Runs slices on the device, one after the other, and reports each outcome. While a device works on
// a slice without a thread, the next slice may be started. Used by the thread that leads the
// executor. Reserve reserves everything that is kept from slice to slice, so only the answers
// themselves may lack memory.
class SliceRunner {
  struct RunningPass;

 public:
  // Backend::device_memory, read once a slice.
  using ReadDeviceMemory = std::function<std::vector<DeviceMemory>()>;
  struct StartedSlice {
    Clock::TimePoint at;
    RunningPass* pass = nullptr;  // of a plain slice; null when none could begin
    bool on_device = false;       // a device works on the pass without a thread
    double estimated_ms = 0;
    // How long the device worked on this slice while the slice before ran. When set, the time of
    // this slice's pass is not known.
    std::optional<Clock::Duration> done_before;
  };
  // The outcome of a slice.
  struct Outcome {
    Clock::Duration duration{};  // without the time that the device worked on the previous slice
    bool ended = true;           // of a plain slice: its pass is not paused
    // Of a hard slice, or of the pass that ended:
    std::uint32_t batch_size = 0;  // queries; 0: nothing was done, or the pass has not ended
    Clock::Duration compute{};     // in all its slices
    FallbackBackend fallback;      // answered the first search, if any
  };

  //   served_by  the backend in the receipt of every answer that no fallback backend gave
  //   clock      borrowed
  //   read       may be empty: there is no device
  SliceRunner(std::shared_ptr<const ServedBy> served_by, const Clock& clock, ReadDeviceMemory read);

  // Makes space for slices of up to task_count tasks. Throws bad_alloc.
  void Reserve(std::size_t task_count);
  // Starts a slice. While a device works on it, one more slice may be started.
  //   tasks  of its parts, in their order
  StartedSlice Start(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks);
  // Runs a started slice until its turn is over. Slices run in the order in which they were
  // started. A task that fails has the reason in its progress.
  //   yield  set when the slice should end soon
  //   next   the slice that was started after it; null for none
  const Outcome& Run(const StartedSlice& started, const Schedule::Slice& slice,
                     std::span<QueuedTask* const> tasks, const std::atomic<bool>& yield,
                     StartedSlice* next = nullptr);
  // Records the times of the slice that just ran, for the estimates and for Schedule::Charge.
  void RecordTimes(std::span<QueuedTask* const> tasks, Schedule::Slice& slice,
                   CostEstimator& estimator) const;
  // Builds the answer to a task that has ended, with its receipt. Nothing else fills a receipt.
  absl::StatusOr<SearchAnswer> BuildAnswer(QueuedTask& queued) const;
  // The receipt of an answer without a search: names the engine that would have searched. From any
  // thread.
  observe::Receipt ReceiptWithoutSearch(const Snapshot& snapshot) const;

  // Forgets a task that is given up, or all tasks.
  void Drop(const TaskProgress& task);
  // Forgets a task in the pass of this slice only.
  void Drop(const StartedSlice& started, const TaskProgress& task);
  void DropAll();
  // Drops the hard groups whose tasks are all answered or given up.
  void DropEmptyGroups();
  // Frees large buffers, while nothing is searched.
  void FreeBuffers();

  const Outcome& outcome() const { return outcome_; }
  // The host bytes of paused passes.
  std::uint64_t paused_bytes() const;
  const ServedBy& served_by() const { return *served_by_; }

 private:
  // The hard queries under way, of tasks of one lane and shape.
  struct HardGroup {
    HardGroup(Lane of_lane, const CostEstimator::Shape& of_shape, SnapshotPtr snapshot,
              SearchWorkspace& workspace, const Clock& clock)
        : lane(of_lane), shape(of_shape), queries(std::move(snapshot), workspace, clock) {}

    const Lane lane;
    const CostEstimator::Shape shape;
    HardQueries queries;
  };

  // The pass of a plain slice.
  struct RunningPass {
    Lane lane = Lane::kPlain;
    bool large = false;
    CostEstimator::Shape shape;
    PlainPass pass;
    Clock::Duration took{};
    bool left_thread_idle = false;
  };

  void RunPlain(const StartedSlice& started, const Schedule::Slice& slice,
                std::span<QueuedTask* const> tasks, const std::atomic<bool>& yield);
  RunningPass* FindPass(const Schedule::Slice& slice);
  // Begins a pass. Returns null when there is no memory; then the tasks have the error.
  RunningPass* BeginPass(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks);
  // Moves ended passes to idle_passes_.
  void KeepEndedPasses();
  void RunHard(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks,
               const std::atomic<bool>& yield);
  HardQueries& UseHardQueries(const Schedule::Slice& slice, const SnapshotPtr& snapshot);
  void ReadDeviceBytes();

  const std::shared_ptr<const ServedBy> served_by_;
  const bool searches_on_host_;
  const Clock& clock_;
  const ReadDeviceMemory read_device_memory_;
  SearchWorkspace workspace_;           // for hard queries
  std::list<RunningPass> passes_;       // paused, or of the current slice
  std::list<RunningPass> idle_passes_;  // ended; their buffers are used again
  std::vector<PlainPass::Part> parts_;
  bool pass_succeeded_ = false;
  bool pass_is_typical_ = true;           // its time is typical of other passes
  Clock::TimePoint idle_thread_until_{};  // until then bulk passes leave one thread idle
  std::list<HardGroup> hard_groups_;
  std::vector<TaskProgress*> hard_tasks_;  // of the current slice
  HardQueries::Report hard_report_;
  Outcome outcome_;
  Clock::TimePoint ended_at_;  // when the slice before ended
  DeviceTime device_time_;     // of the slice, when one of its tasks asks for it
  std::uint64_t device_bytes_ = 0;
  std::uint64_t device_bytes_peak_ = 0;
};

}  // namespace simile::engine
