#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/queue/cost_estimator.h"
#include "engine/queue/lane.h"

namespace simile::engine {

// Work is cut into slices of at most about this, by estimate, so that whatever comes waits no
// longer for its turn. One search cannot be cut; where it takes more than half of this, a slice may
// take twice as long as the search, since searches together share most of what one takes.
inline constexpr double kSliceMs = 20;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Which waiting work runs next, for how long it must wait, and what it will cost. Pure: it has no
// clock and no threads, and follows no pointer. Not thread-safe.
//
// Tasks that can share a search form a group: those of one lane, snapshot and class of k, plain or
// hard.
// Lanes share the device by weights, the collections of a lane equally, and so do the groups of a
// collection, all by start-time fair queueing (Goyal, Vin and Cheng, 1996) on what slices took: the
// one that has had least comes next, and one that was idle begins where the others are. So work
// that comes seldom runs at once, and none starves.
class Schedule {
 public:
  explicit Schedule(std::uint32_t batch_searches_max) : batch_searches_max_(batch_searches_max) {}

  // What a task asks of the device.
  struct Request {
    Lane lane = Lane::kPlain;
    bool hard = false;           // not answered by one search each
    CostEstimator::Shape shape;  // of its snapshot
    std::uint32_t searches = 1;  // of a plain task; those of the first round of a hard one
    double work_ms = 0;          // a hard task's own work beside them, estimated
  };
  // What runs next.
  struct Part {
    std::uint64_t id = 0;
    std::uint32_t searches = 0;  // of a plain task: its next so many
    // Of a hard task: what was done of it, for Charge.
    std::uint32_t searches_done = 0;
    double work_done_ms = 0;  // beside its searches
  };
  struct Slice {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    // Plain: what one pass answers. Hard: the tasks of the group that share it, oldest first, as
    // many as fill a search; once among them, a task is until Remove.
    std::vector<Part> parts;
    std::uint32_t searches = 0;  // plain: of the parts; hard: that a search of this slice may have
    double estimated_ms = 0;
  };

  //   id  greater than every earlier one
  void Add(std::uint64_t id, const Request& request);
  // Takes a task out: it is answered, or will not be. Returns whether it was there.
  bool Remove(std::uint64_t id);
  bool empty() const { return task_count_ == 0; }

  // Chooses what runs next, and takes the searches of a plain slice out. A hard task stays until
  // Remove. A large plain task is cut into parts, which leave space for the small ones beside it.
  // Nothing is delayed to fill a slice. REQUIRES: not empty. Cost O(groups + tasks of the group).
  void Next(Slice& slice);
  // What a slice took. Every Next is followed by one Charge.
  void Charge(const Slice& slice, double ms);
  // What the parts of it took, for later estimates.
  CostEstimator& estimator() { return estimator_; }

  // About how long a task that came now would take to its answer, waiting included.
  double AnswerMs(const Request& request) const;
  // About how long all work of a lane takes to be answered, other lanes' turns included.
  double LaneMs(Lane lane) const;
  // Whether all that waits is plain and takes no longer than this.
  bool IsSmall(double ms) const;

 private:
  struct Task {
    std::uint64_t id = 0;
    std::uint32_t searches_at_once = 0;  // of a hard task: those of its first round
    std::uint64_t searches = 0;          // left
    double work_ms = 0;                  // left, as estimated
    bool begun = false;
  };
  struct Group {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    std::vector<Task> tasks;     // oldest first
    std::uint64_t searches = 0;  // of the tasks
    double work_ms = 0;
    double virtual_ms = 0;             // what it has had; where the others were when it came
    std::uint32_t slice_searches = 1;  // that a slice holds
  };
  // The groups of a lane and snapshot.
  struct Collection {
    Lane lane = Lane::kPlain;
    const void* snapshot = nullptr;
    double virtual_ms = 0;         // as a group's
    double groups_virtual_ms = 0;  // where its groups are

    bool Has(const Group& group) const {
      return group.lane == lane && group.shape.snapshot == snapshot;
    }
  };

  const Group* Find(Lane lane, bool hard, const CostEstimator::Shape& shape) const;
  Group* Find(Lane lane, bool hard, const CostEstimator::Shape& shape);
  Group& GroupOf(const Request& request);
  // REQUIRES: one of its groups is known.
  Collection& CollectionOf(const Group& group);
  bool IsIdle(const Collection& collection) const;
  void ForgetIdle();
  double TurnOf(Lane lane) const;  // the least comes next
  Group& NextGroup();
  void TakeHard(Group& group, Slice& slice);
  static void TakeOff(Group& group, const Slice& slice);  // what is no longer to be done
  void TakePlain(Group& group, Slice& slice);
  // How many searches a slice holds.
  std::uint32_t SearchesOfSlice(const CostEstimator::Shape& shape) const;
  // A pass, or the slices that so many searches are cut into.
  double SearchesMs(const CostEstimator::Shape& shape, std::uint32_t slice_searches,
                    std::uint64_t searches) const;
  double BacklogMs(const Group& group) const;
  // The work of the group that comes before a new task's answer.
  double AheadMs(const Group& group, std::uint32_t searches) const;
  // So much work of the lane and what other lanes have in the meantime.
  double WithOtherLanes(Lane lane, double ms) const;

  const std::uint32_t batch_searches_max_;
  CostEstimator estimator_;
  // With tasks, and those that have had more than the others.
  std::vector<Group> groups_;
  std::vector<Collection> collections_;
  std::size_t task_count_ = 0;
  // By lane: what it has had, in milliseconds over its weight, and where its collections are.
  std::array<double, kLaneCount> lane_virtual_ms_{};
  std::array<double, kLaneCount> collections_virtual_ms_{};
  double lanes_virtual_ms_ = 0;
};

}  // namespace simile::engine
