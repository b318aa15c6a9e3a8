#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/queue/cost_estimator.h"

namespace simile::engine {

// Every task is in one lane; the lanes share the device by weights.
enum class Lane : std::uint8_t {
  kPlain,  // answered by one search; answered right after its pass
  kHard,   // several rounds of searches, every row, or comparisons of rows
  kBulk,   // plain or hard, with a low priority
};
inline constexpr std::size_t kLaneCount = 3;

// The lanes' names in metrics and `simile top`, in the order of the enum.
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames = {"plain", "hard", "bulk"};

// Work is cut into slices of about this length, so that a new task waits no longer for its turn. A
// pass continues in its next slice where it stopped. A device that cannot pause gets passes so
// small that their estimated time is at most a slice. If one search takes more than half a slice,
// such a pass may take twice as long as the search.
inline constexpr double kSliceMs = 20;
// The most passes of large tasks that a lane has under way at once. A pass that was left to a
// device is not counted. At this limit, a new pass must fit into a slice.
inline constexpr std::size_t kPassesMax = 3;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Decides which waiting work runs next, and estimates how long work waits and what it costs. Pure:
// has no clock and no threads, and follows no pointer. Not thread-safe.
//
// Tasks that can share a search form a group: tasks of one lane, snapshot and class of k, either
// plain or hard. Passes answer the plain tasks of a group. A pass takes all tasks that wait when it
// begins, or as many as make a search cheaper. Small and large tasks have separate passes, which
// take turns, so a small task waits for a slice of a large task and never for its end. Small tasks
// get three quarters of the group's time. Lanes share the device by weights; the collections of a
// lane share equally, and so do the groups of a collection. All use start-time fair queueing
// (Goyal, Vin and Cheng, 1996) on the measured time of slices: the lane, collection or group with
// the least time comes next, and one that was idle begins at the others' virtual time. So rare work
// runs at once, and no work starves.
class Schedule {
 public:
  explicit Schedule(std::uint32_t batch_searches_max) : batch_searches_max_(batch_searches_max) {}

  // The work that a task asks of the device.
  struct Request {
    Lane lane = Lane::kPlain;
    bool hard = false;           // one search for each query is not enough
    CostEstimator::Shape shape;  // of its snapshot
    std::uint32_t searches = 1;  // of a plain task; of the first round of a hard task
    double work_ms = 0;          // a hard task's own work besides searches, estimated
  };
  // The work that runs next.
  struct Part {
    std::uint64_t id = 0;
    std::uint32_t searches =
        0;  // of a plain task: this many of its next searches that had not begun
    // Of a hard task: the work that was done, for Charge.
    std::uint32_t searches_done = 0;
    double work_done_ms = 0;  // besides searches
  };
  struct Slice {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    // Plain: the parts that one pass answers, without tasks that were removed since it began. Hard:
    // the tasks of the group that share the slice, oldest first, as many as fill a search. A hard
    // task that has begun is in every later slice of its group until Remove.
    std::vector<Part> parts;
    std::uint32_t searches = 0;  // plain: of the pass; hard: the most of a search of this slice
    double estimated_ms = 0;     // plain: time left of the pass
    // Of a plain slice:
    std::uint32_t searches_max = 0;  // the most that the pass could have had
    bool large = false;              // whether the pass is of large tasks
    bool begins = false;             // whether the pass begins with it
    bool ends = true;                // for Charge: whether the pass is done
    bool runs_to_end = false;        // whether the pass may not be paused: it ends with this slice
    double charged_ms = 0;           // charged in advance
  };

  //   id  greater than every earlier one
  void Add(std::uint64_t id, const Request& request);
  // Removes a task that is answered or given up. Returns whether it was there.
  bool Remove(std::uint64_t id);
  bool empty() const;
  // Whether nothing waits and no pass has more than a slice left.
  bool IsNearlyEmpty() const;

  // Chooses the slice that runs next. A pass that begins takes its searches out of the group; a
  // hard task stays until Remove. Nothing is delayed to fill a pass. REQUIRES: not empty. Cost
  // O(groups + tasks of the group).
  void Next(Slice& slice);
  // Charges the time of a slice. Every chosen slice is charged once.
  void Charge(const Slice& slice, double ms);
  // Whether the waiting tasks fill a pass of a device. Cost O(tasks).
  bool HasFullPass() const;
  // Chooses the next pass while a device works on a plain slice. Returns false unless the next turn
  // belongs to a pass of a device that begins now and is full; a smaller pass would gain searches
  // by waiting. Both passes together must take no longer than a slice, by estimate. The running
  // slice is then charged its estimate, which Charge corrects later, and its pass must end with the
  // slice. Cost as Next.
  bool NextFullPass(Slice& running, Slice& next);
  // Whether the slice under way should end early for a new request: the request is short, and the
  // rest of the slice's pass is long.
  bool EndsEarly(const Slice& slice, const Request& request) const;
  // The estimator, to which the caller reports measured times.
  CostEstimator& estimator() { return estimator_; }
  const CostEstimator& estimator() const { return estimator_; }

  // Estimates the time to the answer of a task that came now, waiting included.
  double AnswerMs(const Request& request) const;
  // Estimates the time until all work of a lane is answered, other lanes' turns included.
  double LaneMs(Lane lane) const;
  // Whether all waiting tasks are plain and take no longer than this together.
  bool IsSmall(double ms) const;

 private:
  struct Task {
    std::uint64_t id = 0;
    std::uint32_t searches_at_once = 0;  // of a hard task: in its first round
    std::uint64_t searches = 0;          // not yet done; of a plain task: not yet begun
    double work_ms = 0;                  // estimated time left
    bool large = false;                  // takes a large share of a slice
    bool begun = false;                  // of a hard task
  };
  // The passes for the small tasks of a group, or for its large tasks.
  struct Passes {
    bool under_way = false;
    std::vector<Part> parts;     // of the pass under way
    std::uint32_t searches = 0;  // likewise
    double estimated_ms = 0;
    double took_ms = 0;
    std::uint32_t searches_max = 1;  // of the next pass
    double virtual_ms = 0;           // time that they have had over their weight, as a group's
    // The estimate of a pass that was left to a device, in addition to the pass under way.
    std::optional<double> on_device_ms;
    bool IsUnderWay() const { return under_way || on_device_ms.has_value(); }
    double PassLeftMs() const;  // of the pass under way
    double LeftMs() const { return PassLeftMs() + on_device_ms.value_or(0); }
  };
  struct Group {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    std::vector<Task> tasks;     // oldest first
    std::uint64_t searches = 0;  // of the tasks
    double work_ms = 0;
    double virtual_ms = 0;  // time that it has had, from the others' virtual time when it came
    std::uint32_t slice_searches = 1;  // take about as long as a slice
    std::array<Passes, 2> passes;  // of a plain group: of its small tasks, and of its large ones

    bool IsUnderWay() const { return passes[0].IsUnderWay() || passes[1].IsUnderWay(); }
    bool IsIdle() const { return tasks.empty() && !IsUnderWay(); }
    bool IsLarge(std::uint32_t searches) const;
  };
  // The groups of a lane and snapshot.
  struct Collection {
    Lane lane = Lane::kPlain;
    const void* snapshot = nullptr;
    double virtual_ms = 0;         // as a group's
    double groups_virtual_ms = 0;  // virtual time of its groups

    bool Has(const Group& group) const {
      return group.lane == lane && group.shape.snapshot == snapshot;
    }
  };

  const Group* Find(Lane lane, bool hard, const CostEstimator::Shape& shape) const;
  Group* Find(Lane lane, bool hard, const CostEstimator::Shape& shape);
  Group& FindOrAddGroup(const Request& request);
  Group NewGroup(const Request& request) const;
  // REQUIRES: one of its groups is known.
  Collection& FindOrAddCollection(const Group& group);
  bool IsIdle(const Collection& collection) const;
  void ForgetIdle();
  double ComputeTurn(Lane lane) const;  // the lane with the least comes next
  Group& NextGroup();
  bool CanRun(const Group& group) const;
  // Whether the group's waiting tasks or pass can run now.
  //   which  0: small tasks; 1: large tasks
  bool CanRun(const Group& group, std::size_t which) const;
  static std::uint64_t WaitingSearches(const Group& group, std::size_t which);
  bool HasFullPass(const Group& group, std::size_t which) const;
  void Choose(Group& group, Slice& slice);
  void TakeHard(Group& group, Slice& slice);
  static void TakeOff(Group& group, const Slice& slice);  // subtracts the work that the slice did
  void TakePlain(Group& group, Slice& slice);
  // Which of the group's passes have the next turn: 0 for small tasks, 1 for large tasks.
  std::size_t NextPasses(const Group& group) const;
  void BeginPass(Group& group, std::size_t which);
  void EndPass(Group& group, std::size_t which);
  // How many searches the next pass of the group may have now.
  std::uint32_t SearchesOfPass(const Group& group, std::size_t which) const;
  // Charges time to the slice's lane, collection, group and passes.
  void ChargeTurns(const Slice& slice, double ms);
  // The most searches of a pass over this snapshot.
  std::uint32_t PassSearchesMax(const CostEstimator::Shape& shape) const {
    return std::min(batch_searches_max_, shape.pass_searches_max);
  }
  // How many searches take about as long as a slice.
  std::uint32_t SearchesOfSlice(const CostEstimator::Shape& shape) const;
  // Decides how many searches take about as long as a slice, and how many a pass may have. A pass
  // has not many more searches than the measured passes, because calls are admitted by estimates
  // from them. A pass of small tasks has no more searches than make each search cheaper.
  void SizePasses(Group& group) const;
  // The time of the passes that this many searches are divided into.
  double SearchesMs(const CostEstimator::Shape& shape, std::uint32_t pass_searches,
                    std::uint64_t searches) const;
  // The time of a group's waiting small or large tasks, plus the rest of their pass.
  double BacklogMs(const Group& group, std::size_t which, std::uint32_t more = 0) const;
  double BacklogMs(const Group& group) const;
  // The time that the group needs until a new plain task is answered, the task included.
  double OwnMs(const Group& group, std::uint32_t searches) const;
  // The time of this much work of the lane, plus the work of other lanes in the meantime.
  double WithOtherLanes(Lane lane, double ms) const;

  const std::uint32_t batch_searches_max_;
  CostEstimator estimator_;
  // Groups that have tasks, and idle groups that are still ahead of their fair share.
  std::vector<Group> groups_;
  std::vector<Collection> collections_;
  std::array<std::size_t, kLaneCount> large_passes_{};  // under way
  // By lane: milliseconds that the lane has had over its weight, and the virtual time of its
  // collections.
  std::array<double, kLaneCount> lane_virtual_ms_{};
  std::array<double, kLaneCount> collections_virtual_ms_{};
  double lanes_virtual_ms_ = 0;
};

// Reserves space for `count` elements. Grows by powers of two. Throws bad_alloc.
template <class Element>
void ReserveFor(std::size_t count, std::vector<Element>& list) {
  if (count > list.capacity()) list.reserve(std::bit_ceil(count));
}

}  // namespace simile::engine
