#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/queue/lane.h"
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

// Runs slices on the device, one at a time, and knows what each came to. Used by the thread that
// leads the executor. What is kept from slice to slice is reserved by Reserve, so that only the
// answers themselves may lack memory.
class SliceRunner {
 public:
  // Backend::device_memory, read once a slice.
  using ReadDeviceMemory = std::function<std::vector<DeviceMemory>()>;
  // What a slice came to.
  struct Outcome {
    Clock::Duration duration{};
    std::uint32_t batch_size = 0;  // queries; 0: nothing was searched or worked on
    FallbackBackend fallback;      // that answered the first search
  };

  //   served_by  for the receipt of every answer without a fallback backend
  //   clock      borrowed
  //   read       may be empty: there is no device
  SliceRunner(std::shared_ptr<const ServedBy> served_by, const Clock& clock, ReadDeviceMemory read);

  // Makes space for slices of so many tasks. Throws bad_alloc.
  void Reserve(std::size_t task_count);
  // Runs a slice. A task that fails has the reason in its progress.
  //   tasks  of its parts, in their order
  //   yield  whether a hard slice is to end soon
  const Outcome& Run(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks,
                     const std::atomic<bool>& yield);
  // What the parts of the slice just run took: for the estimates, and for Schedule::Charge.
  void RecordTimes(std::span<QueuedTask* const> tasks, Schedule::Slice& slice,
                   CostEstimator& estimator) const;
  // The answer to a task that has ended, its receipt included: nothing else fills a receipt.
  absl::StatusOr<SearchAnswer> BuildAnswer(QueuedTask& queued) const;
  // Of an answer for which nothing was searched: what would have searched. From any thread.
  observe::Receipt ReceiptWithoutSearch(const Snapshot& snapshot) const;

  // Forgets a hard task that is given up, or all of them.
  void Drop(const TaskProgress& task);
  void DropAll() { hard_groups_.clear(); }
  // Ends what is kept for hard tasks that are all answered or given up.
  void DropEmptyGroups();
  // Frees large buffers, while nothing is searched.
  void FreeBuffers();

  const Outcome& outcome() const { return outcome_; }
  const ServedBy& served_by() const { return *served_by_; }

 private:
  // The hard queries under way of the tasks of one lane and shape.
  struct HardGroup {
    HardGroup(Lane of_lane, const CostEstimator::Shape& of_shape, SnapshotPtr snapshot,
              SearchWorkspace& workspace, const Clock& clock)
        : lane(of_lane), shape(of_shape), queries(std::move(snapshot), workspace, clock) {}

    const Lane lane;
    const CostEstimator::Shape shape;
    HardQueries queries;
  };

  void RunPlain(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks);
  void RunHard(const Schedule::Slice& slice, std::span<QueuedTask* const> tasks,
               Clock::TimePoint end, const std::atomic<bool>& yield);
  HardQueries& HardQueriesOf(const Schedule::Slice& slice, const SnapshotPtr& snapshot);
  void ReadDeviceBytes();

  const std::shared_ptr<const ServedBy> served_by_;
  const Clock& clock_;
  const ReadDeviceMemory read_device_memory_;
  SearchWorkspace workspace_;
  PlainPass plain_pass_{workspace_};
  std::vector<PlainPass::Part> parts_;
  bool pass_succeeded_ = false;
  std::list<HardGroup> hard_groups_;
  std::vector<TaskProgress*> hard_tasks_;  // of the slice
  HardQueries::Report hard_report_;
  Outcome outcome_;
  DeviceTime device_time_;  // of the slice, where one of its tasks asks for it
  std::uint64_t device_bytes_ = 0;
  std::uint64_t device_bytes_peak_ = 0;
};

}  // namespace simile::engine
