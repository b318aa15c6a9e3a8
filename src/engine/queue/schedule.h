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

// What work waits behind what. Every task is in one lane; the lanes share the device by weights.
enum class Lane : std::uint8_t {
  kPlain,  // answered by one search: leaves right after its pass
  kHard,   // several rounds of searches, every row, or comparisons of rows
  kBulk,   // asked for with a low priority, of either kind
};
inline constexpr std::size_t kLaneCount = 3;

// As metrics and `simile top` call them, in the order of the enum.
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames = {"plain", "hard", "bulk"};

// Work is cut into slices of about this, so that whatever comes waits no longer for its turn. A
// pass over a collection goes on in its next slice where it stopped. Where a device cannot pause a
// pass, passes are made so small that their estimated time is no longer. Where one search takes
// more than half of this, such a pass may take twice as long as the search.
inline constexpr double kSliceMs = 20;
// The most passes of large tasks of a lane under way at once. A pass that was left to a device is
// not counted. At this limit, a new pass is limited to a slice.
inline constexpr std::size_t kPassesMax = 3;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Which waiting work runs next, for how long it must wait, and what it will cost. Pure: it has no
// clock and no threads, and follows no pointer. Not thread-safe.
//
// Tasks that can share a search form a group: those of one lane, snapshot and class of k, plain or
// hard. The plain ones of a group are answered by passes, each for all that wait when it begins, or
// for as many as make a search cheaper. Small tasks and large ones have passes of their own, which
// take turns, so that a small task waits for slices of a large one and never for its end. Small
// ones get three quarters of the group's time. Lanes share the device by weights, the collections
// of a lane equally, and so do the groups of a collection, all by start-time fair queueing (Goyal,
// Vin and Cheng, 1996) on what slices took: the one that has had least comes next, and one that was
// idle begins where the others are. So work that comes seldom runs at once, and none starves.
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
    std::uint32_t searches = 0;  // of a plain task: its next so many that had not begun
    // Of a hard task: what was done of it, for Charge.
    std::uint32_t searches_done = 0;
    double work_done_ms = 0;  // beside its searches
  };
  struct Slice {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    // Plain: what one pass answers, without the tasks that were removed since it began. Hard: the
    // tasks of the group that share it, oldest first, as many as fill a search; once among them, a
    // task is until Remove.
    std::vector<Part> parts;
    std::uint32_t searches = 0;  // plain: of the pass; hard: that a search of this slice may have
    double estimated_ms = 0;     // plain: what is left of the pass
    // Of a plain slice:
    std::uint32_t searches_max = 0;  // that the pass could have had
    bool large = false;              // whether the pass is of large tasks
    bool begins = false;             // whether the pass begins with it
    bool ends = true;                // for Charge: whether the pass is done
    bool runs_to_end = false;        // whether the pass may not be paused: it ends with this slice
    double charged_ms = 0;           // in advance
  };

  //   id  greater than every earlier one
  void Add(std::uint64_t id, const Request& request);
  // Takes a task out: it is answered, or will not be. Returns whether it was there.
  bool Remove(std::uint64_t id);
  bool empty() const;
  // Whether nothing waits and no pass has more than a slice left.
  bool IsNearlyEmpty() const;

  // Chooses what runs next, and takes the searches of a pass out when it begins. A hard task stays
  // until Remove. Nothing is delayed to fill a pass. REQUIRES: not empty. Cost O(groups + tasks of
  // the group).
  void Next(Slice& slice);
  // What a slice took. Every slice that was chosen is charged once.
  void Charge(const Slice& slice, double ms);
  // Whether tasks wait that fill a pass of a device. Cost O(tasks).
  bool HasFullPass() const;
  // Chooses the next pass while a device works on a plain slice. Returns false unless the next turn
  // belongs to a pass of a device that begins now and is full: a smaller one would gain searches by
  // waiting. Both together must take no longer than a slice, by estimate. The running slice is then
  // charged its estimate, and its pass must end with it. Charge corrects that later. Cost as Next.
  bool NextFullPass(Slice& running, Slice& next);
  // Whether the slice under way should end early for this request, which has come since: it is
  // short, and what is left of the slice's pass is long.
  bool EndsEarly(const Slice& slice, const Request& request) const;
  // What the parts of it took, for later estimates.
  CostEstimator& estimator() { return estimator_; }
  const CostEstimator& estimator() const { return estimator_; }

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
    std::uint64_t searches = 0;          // left: of a plain task those that have not begun
    double work_ms = 0;                  // left, as estimated
    bool large = false;                  // takes much of a slice
    bool begun = false;                  // a hard one
  };
  // The passes for the small tasks of a group, or for its large ones.
  struct Passes {
    bool under_way = false;
    std::vector<Part> parts;     // of the one under way
    std::uint32_t searches = 0;  // likewise
    double estimated_ms = 0;
    double took_ms = 0;
    std::uint32_t searches_max = 1;  // of the next one
    double virtual_ms = 0;           // what they have had over their weight, as a group's
    // The estimate of a pass that was left to a device, beside the one under way.
    std::optional<double> on_device_ms;
    bool IsUnderWay() const { return under_way || on_device_ms.has_value(); }
    double PassLeftMs() const;  // of the one under way
    double LeftMs() const { return PassLeftMs() + on_device_ms.value_or(0); }
  };
  struct Group {
    Lane lane = Lane::kPlain;
    bool hard = false;
    CostEstimator::Shape shape;
    std::vector<Task> tasks;     // oldest first
    std::uint64_t searches = 0;  // of the tasks
    double work_ms = 0;
    double virtual_ms = 0;             // what it has had; where the others were when it came
    std::uint32_t slice_searches = 1;  // that take about as long as a slice
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
    double groups_virtual_ms = 0;  // where its groups are

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
  double ComputeTurn(Lane lane) const;  // the least comes next
  Group& NextGroup();
  bool CanRun(const Group& group) const;
  // Of its small tasks, or with 1 of its large ones: those that wait, or their pass.
  bool CanRun(const Group& group, std::size_t which) const;
  static std::uint64_t WaitingSearches(const Group& group, std::size_t which);
  bool HasFullPass(const Group& group, std::size_t which) const;
  void Choose(Group& group, Slice& slice);
  void TakeHard(Group& group, Slice& slice);
  static void TakeOff(Group& group, const Slice& slice);  // what is no longer to be done
  void TakePlain(Group& group, Slice& slice);
  // Which of the group's passes have the next turn: 1 for those of large tasks.
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
  // Decides how many searches take about as long as a slice, and how many a pass may have: not many
  // more than those of passes that were measured, because the estimates by which calls are admitted
  // follow from these; and of small tasks no more than makes each cheaper.
  void SizePasses(Group& group) const;
  // The passes that so many searches are divided into.
  double SearchesMs(const CostEstimator::Shape& shape, std::uint32_t pass_searches,
                    std::uint64_t searches) const;
  // Of a group's small or large tasks: those that wait, and what is left of their pass.
  double BacklogMs(const Group& group, std::size_t which, std::uint32_t more = 0) const;
  double BacklogMs(const Group& group) const;
  // The work of its group until a new plain task is answered, its own included.
  double OwnMs(const Group& group, std::uint32_t searches) const;
  // So much work of the lane and what other lanes have in the meantime.
  double WithOtherLanes(Lane lane, double ms) const;

  const std::uint32_t batch_searches_max_;
  CostEstimator estimator_;
  // With tasks, and those that have had more than the others.
  std::vector<Group> groups_;
  std::vector<Collection> collections_;
  std::array<std::size_t, kLaneCount> large_passes_{};  // under way
  // By lane: what it has had, in milliseconds over its weight, and where its collections are.
  std::array<double, kLaneCount> lane_virtual_ms_{};
  std::array<double, kLaneCount> collections_virtual_ms_{};
  double lanes_virtual_ms_ = 0;
};

// Space for so many elements. Grows by powers of two. Throws bad_alloc.
template <class Element>
void ReserveFor(std::size_t count, std::vector<Element>& list) {
  if (count > list.capacity()) list.reserve(std::bit_ceil(count));
}

}  // namespace simile::engine
