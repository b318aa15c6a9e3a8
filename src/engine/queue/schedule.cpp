#include "engine/queue/schedule.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace simile::engine {
namespace {

// Shares of the device while all lanes have work. Bulk gets its part even then, and all that the
// others leave.
constexpr std::array<double, kLaneCount> kWeights = {70, 24, 6};

// A plain task with more searches than a slice over this is large: beside others it gets no more
// than that at a time, so that they leave soon.
constexpr std::uint32_t kLargeTaskDivisor = 4;

std::size_t IndexOf(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

void Schedule::Add(std::uint64_t id, const Request& request) {
  Group& group = GroupOf(request);
  assert(group.tasks.empty() || group.tasks.back().id < id);
  group.tasks.push_back({id, request.searches, request.searches, request.work_ms, false});
  group.searches += request.searches;
  group.work_ms += request.work_ms;
  ++task_count_;
}

bool Schedule::Remove(std::uint64_t id) {
  for (Group& group : groups_) {
    const auto found = std::ranges::lower_bound(group.tasks, id, {}, &Task::id);
    if (found == group.tasks.end() || found->id != id) continue;
    group.searches -= found->searches;
    group.work_ms -= found->work_ms;
    group.tasks.erase(found);
    if (group.tasks.empty()) group.work_ms = 0;  // sums of fractions leave a rest
    --task_count_;
    return true;
  }
  return false;
}

const Schedule::Group* Schedule::Find(Lane lane, bool hard,
                                      const CostEstimator::Shape& shape) const {
  const auto found = std::ranges::find_if(groups_, [&](const Group& group) {
    return group.lane == lane && group.hard == hard && group.shape.IsLike(shape);
  });
  return found == groups_.end() ? nullptr : &*found;
}

Schedule::Group* Schedule::Find(Lane lane, bool hard, const CostEstimator::Shape& shape) {
  return const_cast<Group*>(std::as_const(*this).Find(lane, hard, shape));
}

// What has been idle begins where the others are: it has saved nothing up.
Schedule::Group& Schedule::GroupOf(const Request& request) {
  const std::size_t lane = IndexOf(request.lane);
  const bool lane_idle = std::ranges::none_of(groups_, [&](const Group& group) {
    return group.lane == request.lane && !group.tasks.empty();
  });
  if (lane_idle) lane_virtual_ms_[lane] = std::max(lane_virtual_ms_[lane], lanes_virtual_ms_);
  Group* group = Find(request.lane, request.hard, request.shape);
  if (group == nullptr) {
    group = &groups_.emplace_back(Group{.lane = request.lane,
                                        .hard = request.hard,
                                        .shape = request.shape,
                                        .tasks = {},
                                        .searches = 0,
                                        .work_ms = 0,
                                        .virtual_ms = 0,
                                        .slice_searches = SearchesOfSlice(request.shape)});
  }
  Collection& collection = CollectionOf(*group);
  if (IsIdle(collection)) {
    collection.virtual_ms = std::max(collection.virtual_ms, collections_virtual_ms_[lane]);
  }
  if (group->tasks.empty()) {
    group->shape = request.shape;
    group->virtual_ms = std::max(group->virtual_ms, collection.groups_virtual_ms);
  }
  return *group;
}

Schedule::Collection& Schedule::CollectionOf(const Group& group) {
  const auto found = std::ranges::find_if(
      collections_, [&](const Collection& collection) { return collection.Has(group); });
  if (found != collections_.end()) return *found;
  return collections_.emplace_back(
      Collection{.lane = group.lane, .snapshot = group.shape.snapshot});
}

bool Schedule::IsIdle(const Collection& collection) const {
  return std::ranges::none_of(
      groups_, [&](const Group& group) { return collection.Has(group) && !group.tasks.empty(); });
}

// What has had no more than the others needs no memory of it.
void Schedule::ForgetIdle() {
  std::erase_if(collections_, [this](const Collection& collection) {
    const bool all = collection.virtual_ms <= collections_virtual_ms_[IndexOf(collection.lane)] &&
                     IsIdle(collection);
    std::erase_if(groups_, [&](const Group& group) {
      return collection.Has(group) && group.tasks.empty() &&
             (all || group.virtual_ms <= collection.groups_virtual_ms);
    });
    return all;
  });
}

// A lane may be a slice ahead of its share before it waits for the lane below it.
double Schedule::TurnOf(Lane lane) const {
  double turn = lane_virtual_ms_[IndexOf(lane)];
  for (std::size_t i = IndexOf(lane); i < IndexOf(Lane::kBulk); ++i) {
    turn -= kSliceMs / kWeights[i];
  }
  return turn;
}

Schedule::Group& Schedule::NextGroup() {
  const auto comes_before = [this](const Group& group, const Group& other) {
    if (group.lane != other.lane) return TurnOf(group.lane) < TurnOf(other.lane);
    if (group.shape.snapshot == other.shape.snapshot) return group.virtual_ms < other.virtual_ms;
    return CollectionOf(group).virtual_ms < CollectionOf(other).virtual_ms;
  };
  Group* next = nullptr;
  for (Group& group : groups_) {
    if (group.tasks.empty()) continue;
    if (next == nullptr || comes_before(group, *next)) next = &group;
  }
  assert(next != nullptr);
  return *next;
}

void Schedule::Next(Slice& slice) {
  ForgetIdle();
  Group& group = NextGroup();
  const std::size_t lane = IndexOf(group.lane);
  Collection& collection = CollectionOf(group);
  lanes_virtual_ms_ = std::max(lanes_virtual_ms_, lane_virtual_ms_[lane]);
  collections_virtual_ms_[lane] = collection.virtual_ms;
  collection.groups_virtual_ms = group.virtual_ms;
  slice.lane = group.lane;
  slice.hard = group.hard;
  slice.shape = group.shape;
  slice.parts.clear();
  group.hard ? TakeHard(group, slice) : TakePlain(group, slice);
}

// Those that have begun, and as many more as fill a search with them. What is younger waits, where
// it is counted and can be refused.
void Schedule::TakeHard(Group& group, Slice& slice) {
  std::uint64_t searches = 0;
  for (Task& task : group.tasks) {
    const bool is_full =
        searches >= group.slice_searches || slice.parts.size() == batch_searches_max_;
    if (!task.begun && is_full) break;
    task.begun = true;
    searches += task.searches_at_once;
    slice.parts.push_back({.id = task.id});
  }
  slice.searches = group.slice_searches;
  slice.estimated_ms = std::min(kSliceMs, BacklogMs(group));
}

// The small tasks, oldest first, and of the oldest large one as much as fits beside them: its share
// at least, and no more than that while small ones run with it.
void Schedule::TakePlain(Group& group, Slice& slice) {
  const std::uint32_t most = group.slice_searches;
  const std::uint32_t share = std::max(1U, most / kLargeTaskDivisor);
  const auto is_large = [&](const Task& task) { return task.begun || task.searches > share; };
  const bool any_large = std::ranges::any_of(group.tasks, is_large);
  const bool any_small = !std::ranges::all_of(group.tasks, is_large);
  std::uint32_t for_large = any_small ? share : most;
  const std::uint32_t for_small = any_large && most > for_large ? most - for_large : most;
  std::uint32_t taken = 0;
  bool small_fits = true;
  for (Task& task : group.tasks) {
    std::uint32_t searches = 0;
    if (is_large(task)) {
      searches = static_cast<std::uint32_t>(std::min<std::uint64_t>(task.searches, for_large));
      for_large -= searches;
    } else if (small_fits) {
      // A task never overtakes an older one that did not fit.
      small_fits = taken == 0 || taken + task.searches <= for_small;
      if (small_fits) {
        searches = static_cast<std::uint32_t>(task.searches);
        taken += searches;
      }
    }
    if (searches == 0) continue;
    slice.parts.push_back({.id = task.id, .searches = searches});
    task.begun = true;
    task.searches -= searches;
  }
  slice.searches = 0;
  for (const Part& part : slice.parts) slice.searches += part.searches;
  slice.estimated_ms = estimator_.PassMs(slice.shape, slice.searches);
  group.searches -= slice.searches;
  task_count_ -= static_cast<std::size_t>(
      std::erase_if(group.tasks, [](const Task& task) { return task.searches == 0; }));
}

void Schedule::Charge(const Slice& slice, double ms) {
  lane_virtual_ms_[IndexOf(slice.lane)] += ms / kWeights[IndexOf(slice.lane)];
  Group* const group = Find(slice.lane, slice.hard, slice.shape);
  if (group == nullptr) return;
  CollectionOf(*group).virtual_ms += ms;
  group->virtual_ms += ms;
  group->slice_searches = SearchesOfSlice(group->shape);
  if (slice.hard) TakeOff(*group, slice);
}

// What a task took beyond its estimate is taken off no other's.
void Schedule::TakeOff(Group& group, const Slice& slice) {
  auto task = group.tasks.begin();
  for (const Part& part : slice.parts) {
    while (task != group.tasks.end() && task->id < part.id) ++task;
    if (task == group.tasks.end()) return;
    if (task->id != part.id) continue;  // it was removed meanwhile
    const std::uint64_t searches = std::min<std::uint64_t>(part.searches_done, task->searches);
    const double work_ms = std::min(part.work_done_ms, task->work_ms);
    task->searches -= searches;
    group.searches -= searches;
    task->work_ms -= work_ms;
    group.work_ms -= work_ms;
  }
}

std::uint32_t Schedule::SearchesOfSlice(const CostEstimator::Shape& shape) const {
  const double ms = std::max(kSliceMs, 2 * estimator_.PassMs(shape, 1));
  return estimator_.SearchesWithin(shape, ms, batch_searches_max_);
}

double Schedule::SearchesMs(const CostEstimator::Shape& shape, std::uint32_t slice_searches,
                            std::uint64_t searches) const {
  const std::uint64_t slices = searches / slice_searches;
  const auto rest = static_cast<std::uint32_t>(searches % slice_searches);
  const double of_slices =
      slices > 0 ? static_cast<double>(slices) * estimator_.PassMs(shape, slice_searches) : 0;
  return of_slices + (rest > 0 ? estimator_.PassMs(shape, rest) : 0);
}

double Schedule::BacklogMs(const Group& group) const {
  return SearchesMs(group.shape, group.slice_searches, group.searches) + group.work_ms;
}

double Schedule::AheadMs(const Group& group, std::uint32_t searches) const {
  const std::uint32_t share = std::max(1U, group.slice_searches / kLargeTaskDivisor);
  if (group.hard || searches > share) return BacklogMs(group);
  // Of large tasks only their shares run before it.
  std::uint64_t small = 0;
  for (const Task& task : group.tasks) {
    if (!task.begun && task.searches <= share) small += task.searches;
  }
  const std::uint64_t large = group.searches - small;
  // Each slice with small tasks holds three parts of those and one of large ones.
  return SearchesMs(group.shape, group.slice_searches,
                    small + std::min(large, share + small / (kLargeTaskDivisor - 1)));
}

double Schedule::WithOtherLanes(Lane lane, double ms) const {
  std::array<double, kLaneCount> backlog{};
  for (const Group& group : groups_) {
    if (group.lane != lane) backlog[IndexOf(group.lane)] += BacklogMs(group);
  }
  double total = ms;
  for (std::size_t other = 0; other < kLaneCount; ++other) {
    total += std::min(backlog[other], ms * kWeights[other] / kWeights[IndexOf(lane)]);
  }
  return total;
}

double Schedule::AnswerMs(const Request& request) const {
  const Group* const own = Find(request.lane, request.hard, request.shape);
  const std::uint32_t slice_searches =
      own == nullptr ? SearchesOfSlice(request.shape) : own->slice_searches;
  const double own_ms = SearchesMs(request.shape, slice_searches, request.searches) +
                        request.work_ms + (own == nullptr ? 0 : AheadMs(*own, request.searches));
  // While the group gets that, so does each other of its collection; and while the collection gets
  // what they come to together, so does each other of the lane.
  double collection_ms = own_ms;
  for (const Group& group : groups_) {
    if (&group != own && group.lane == request.lane &&
        group.shape.snapshot == request.shape.snapshot) {
      collection_ms += std::min(BacklogMs(group), own_ms);
    }
  }
  double lane_ms = collection_ms;
  for (const Collection& collection : collections_) {
    if (collection.lane != request.lane || collection.snapshot == request.shape.snapshot) continue;
    double backlog_ms = 0;
    for (const Group& group : groups_) {
      if (collection.Has(group)) backlog_ms += BacklogMs(group);
    }
    lane_ms += std::min(backlog_ms, collection_ms);
  }
  return WithOtherLanes(request.lane, lane_ms);
}

double Schedule::LaneMs(Lane lane) const {
  double ms = 0;
  for (const Group& group : groups_) {
    if (group.lane == lane) ms += BacklogMs(group);
  }
  return WithOtherLanes(lane, ms);
}

bool Schedule::IsSmall(double ms) const {
  double total = 0;
  for (const Group& group : groups_) {
    if (group.tasks.empty()) continue;
    if (group.hard) return false;
    total += BacklogMs(group);
  }
  return total <= ms;
}

}  // namespace simile::engine
