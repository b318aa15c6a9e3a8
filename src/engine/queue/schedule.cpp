#include "engine/queue/schedule.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace simile::engine {
namespace {

// Shares of the device while all lanes have work. Bulk also gets all time that the other lanes
// leave.
constexpr std::array<double, kLaneCount> kWeights = {70, 24, 6};

// A plain task is large when it has more searches than a quarter of a slice.
constexpr std::uint32_t kLargeTaskDivisor = 4;

// Shares of a group while small and large tasks wait in it.
constexpr std::array<double, 2> kPassWeights = {3, 1};

// A slice ends early for a task of its own lane that takes no longer than this.
constexpr double kShortMs = kSliceMs / 4;

std::size_t ToIndex(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

double Schedule::Passes::PassLeftMs() const {
  return under_way ? std::max(0.0, estimated_ms - took_ms) : 0;
}

bool Schedule::Group::IsLarge(std::uint32_t of_searches) const {
  return of_searches > std::max(1U, slice_searches / kLargeTaskDivisor);
}

void Schedule::Add(std::uint64_t id, const Request& request) {
  Group& group = FindOrAddGroup(request);
  assert(group.tasks.empty() || group.tasks.back().id < id);
  if (!group.hard) {
    for (Passes& passes : group.passes) ReserveFor(group.tasks.size() + 1, passes.parts);
    const std::size_t own = group.IsLarge(request.searches) ? 1 : 0;
    if (!group.passes[own].IsUnderWay() && WaitingSearches(group, own) == 0) {
      // Passes that were idle begin at the others' virtual time.
      group.passes[own].virtual_ms =
          std::max(group.passes[own].virtual_ms, group.passes[1 - own].virtual_ms);
    }
  }
  group.tasks.push_back({.id = id,
                         .searches_at_once = request.searches,
                         .searches = request.searches,
                         .work_ms = request.work_ms,
                         .large = group.IsLarge(request.searches)});
  group.searches += request.searches;
  group.work_ms += request.work_ms;
}

bool Schedule::Remove(std::uint64_t id) {
  bool was_there = false;
  for (Group& group : groups_) {
    const auto found = std::ranges::lower_bound(group.tasks, id, {}, &Task::id);
    if (found != group.tasks.end() && found->id == id) {
      group.searches -= found->searches;
      group.work_ms -= found->work_ms;
      group.tasks.erase(found);
      if (group.tasks.empty()) group.work_ms = 0;  // sums of fractions leave a remainder
      was_there = true;
    }
    for (std::size_t which = 0; which < group.passes.size(); ++which) {
      std::vector<Part>& parts = group.passes[which].parts;
      if (std::erase_if(parts, [id](const Part& part) { return part.id == id; }) == 0) continue;
      if (parts.empty()) EndPass(group, which);
      was_there = true;
    }
  }
  return was_there;
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

// A group that was idle begins at the others' virtual time, so idle time gives it no credit.
Schedule::Group& Schedule::FindOrAddGroup(const Request& request) {
  const std::size_t lane = ToIndex(request.lane);
  const bool lane_idle = std::ranges::none_of(
      groups_, [&](const Group& group) { return group.lane == request.lane && !group.IsIdle(); });
  if (lane_idle) lane_virtual_ms_[lane] = std::max(lane_virtual_ms_[lane], lanes_virtual_ms_);
  Group* group = Find(request.lane, request.hard, request.shape);
  if (group == nullptr) {
    group = &groups_.emplace_back(NewGroup(request));
  }
  Collection& collection = FindOrAddCollection(*group);
  if (IsIdle(collection)) {
    collection.virtual_ms = std::max(collection.virtual_ms, collections_virtual_ms_[lane]);
  }
  group->shape = request.shape;  // it changes when a device is lost
  if (group->IsIdle()) {
    group->virtual_ms = std::max(group->virtual_ms, collection.groups_virtual_ms);
  }
  return *group;
}

Schedule::Group Schedule::NewGroup(const Request& request) const {
  Group group;
  group.lane = request.lane;
  group.hard = request.hard;
  group.shape = request.shape;
  SizePasses(group);
  return group;
}

Schedule::Collection& Schedule::FindOrAddCollection(const Group& group) {
  const auto found = std::ranges::find_if(
      collections_, [&](const Collection& collection) { return collection.Has(group); });
  if (found != collections_.end()) return *found;
  return collections_.emplace_back(
      Collection{.lane = group.lane, .snapshot = group.shape.snapshot});
}

bool Schedule::IsIdle(const Collection& collection) const {
  return std::ranges::none_of(
      groups_, [&](const Group& group) { return collection.Has(group) && !group.IsIdle(); });
}

// Forgets idle groups that are not ahead of any group: no choice depends on them.
void Schedule::ForgetIdle() {
  std::erase_if(collections_, [this](const Collection& collection) {
    const bool all = collection.virtual_ms <= collections_virtual_ms_[ToIndex(collection.lane)] &&
                     IsIdle(collection);
    std::erase_if(groups_, [&](const Group& group) {
      return collection.Has(group) && group.IsIdle() &&
             (all || group.virtual_ms <= collection.groups_virtual_ms);
    });
    return all;
  });
}

// A lane may be a slice ahead of its share before it waits for the next lower lane.
double Schedule::ComputeTurn(Lane lane) const {
  double turn = lane_virtual_ms_[ToIndex(lane)];
  for (std::size_t i = ToIndex(lane); i < ToIndex(Lane::kBulk); ++i) {
    turn -= kSliceMs / kWeights[i];
  }
  return turn;
}

Schedule::Group& Schedule::NextGroup() {
  const auto comes_before = [this](const Group& group, const Group& other) {
    if (group.lane != other.lane) return ComputeTurn(group.lane) < ComputeTurn(other.lane);
    if (group.shape.snapshot == other.shape.snapshot) return group.virtual_ms < other.virtual_ms;
    return FindOrAddCollection(group).virtual_ms < FindOrAddCollection(other).virtual_ms;
  };
  Group* next = nullptr;
  for (Group& group : groups_) {
    if (!CanRun(group)) continue;
    if (next == nullptr || comes_before(group, *next)) next = &group;
  }
  assert(next != nullptr);
  return *next;
}

bool Schedule::CanRun(const Group& group) const {
  if (group.hard) return !group.tasks.empty();
  return CanRun(group, 0) || CanRun(group, 1);
}

bool Schedule::CanRun(const Group& group, std::size_t which) const {
  if (group.passes[which].under_way) return true;
  const auto oldest = std::ranges::find_if(
      group.tasks, [which](const Task& task) { return task.large == (which == 1); });
  if (oldest == group.tasks.end()) return false;
  if (which == 0 || large_passes_[ToIndex(group.lane)] < kPassesMax) return true;
  const auto searches = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(oldest->searches, SearchesOfPass(group, which)));
  return estimator_.PassMs(group.shape, searches) <= kSliceMs;
}

std::uint32_t Schedule::SearchesOfPass(const Group& group, std::size_t which) const {
  const std::uint32_t most = group.passes[which].searches_max;
  const bool is_free = which == 0 || large_passes_[ToIndex(group.lane)] < kPassesMax;
  return is_free ? most : std::min(most, group.slice_searches);
}

bool Schedule::empty() const { return std::ranges::all_of(groups_, &Group::IsIdle); }

bool Schedule::IsNearlyEmpty() const {
  return std::ranges::all_of(groups_, [](const Group& group) {
    return group.tasks.empty() && group.passes[0].LeftMs() <= kSliceMs &&
           group.passes[1].LeftMs() <= kSliceMs;
  });
}

std::uint64_t Schedule::WaitingSearches(const Group& group, std::size_t which) {
  std::uint64_t searches = 0;
  for (const Task& task : group.tasks) {
    if (task.large == (which == 1)) searches += task.searches;
  }
  return searches;
}

void Schedule::Next(Slice& slice) {
  ForgetIdle();
  Choose(NextGroup(), slice);
}

bool Schedule::HasFullPass() const {
  return std::ranges::any_of(groups_, [this](const Group& group) {
    return HasFullPass(group, 0) || HasFullPass(group, 1);
  });
}

bool Schedule::HasFullPass(const Group& group, std::size_t which) const {
  return !group.hard && !group.shape.can_pause && CanRun(group, which) &&
         WaitingSearches(group, which) >= SearchesOfPass(group, which);
}

bool Schedule::NextFullPass(Slice& running, Slice& next) {
  if (!HasFullPass()) return false;
  ForgetIdle();
  // Computes the turns as of the end of the running slice.
  Group* const own = Find(running.lane, false, running.shape);
  Passes* const passes = own != nullptr ? &own->passes[running.large ? 1 : 0] : nullptr;
  const bool was_under_way = passes != nullptr && std::exchange(passes->under_way, false);
  const std::size_t large_ended = was_under_way && running.large ? 1 : 0;
  large_passes_[ToIndex(running.lane)] -= large_ended;
  ChargeTurns(running, running.estimated_ms);

  Group& group = NextGroup();
  const std::size_t which = NextPasses(group);
  const bool is_full = !group.passes[which].under_way && HasFullPass(group, which);
  if (!is_full ||
      running.estimated_ms + estimator_.PassMs(group.shape, SearchesOfPass(group, which)) >
          kSliceMs) {
    ChargeTurns(running, -running.estimated_ms);
    large_passes_[ToIndex(running.lane)] += large_ended;
    if (passes != nullptr) passes->under_way = was_under_way;
    return false;
  }
  running.runs_to_end = true;
  running.charged_ms = running.estimated_ms;
  if (passes != nullptr) {
    passes->parts.clear();
    passes->on_device_ms = running.charged_ms;
  }
  Choose(group, next);
  return true;
}

void Schedule::Choose(Group& group, Slice& slice) {
  const std::size_t lane = ToIndex(group.lane);
  Collection& collection = FindOrAddCollection(group);
  lanes_virtual_ms_ = std::max(lanes_virtual_ms_, lane_virtual_ms_[lane]);
  collections_virtual_ms_[lane] = collection.virtual_ms;
  collection.groups_virtual_ms = group.virtual_ms;
  slice.lane = group.lane;
  slice.hard = group.hard;
  slice.shape = group.shape;
  slice.parts.clear();
  slice.large = false;
  slice.begins = false;
  slice.ends = true;
  slice.runs_to_end = false;
  slice.charged_ms = 0;
  group.hard ? TakeHard(group, slice) : TakePlain(group, slice);
}

// Takes the tasks that have begun, and as many more as fill a search. Younger tasks wait in the
// queue, where they are counted and can be refused.
void Schedule::TakeHard(Group& group, Slice& slice) {
  std::uint64_t searches = 0;
  for (Task& task : group.tasks) {
    const bool is_full =
        searches >= group.slice_searches || slice.parts.size() == PassSearchesMax(group.shape);
    if (!task.begun && is_full) break;
    task.begun = true;
    searches += task.searches_at_once;
    slice.parts.push_back({.id = task.id});
  }
  slice.searches = group.slice_searches;
  slice.estimated_ms = std::min(kSliceMs, BacklogMs(group));
}

void Schedule::TakePlain(Group& group, Slice& slice) {
  const std::size_t which = NextPasses(group);
  Passes& passes = group.passes[which];
  const std::uint32_t most = SearchesOfPass(group, which);
  slice.large = which == 1;
  slice.begins = !passes.under_way;
  if (slice.begins) BeginPass(group, which);
  slice.parts = passes.parts;
  slice.searches = passes.searches;
  slice.searches_max = most;
  slice.estimated_ms = passes.PassLeftMs();
}

std::size_t Schedule::NextPasses(const Group& group) const {
  if (!CanRun(group, 1)) return 0;
  if (!CanRun(group, 0)) return 1;
  return group.passes[0].virtual_ms <= group.passes[1].virtual_ms ? 0 : 1;
}

// Begins a pass for the waiting tasks, oldest first, up to the most searches of a pass.
void Schedule::BeginPass(Group& group, std::size_t which) {
  Passes& passes = group.passes[which];
  const std::uint32_t most = SearchesOfPass(group, which);
  passes.parts.clear();
  passes.searches = 0;
  for (Task& task : group.tasks) {
    if (task.large != (which == 1)) continue;
    if (passes.searches >= most) break;
    auto searches = static_cast<std::uint32_t>(task.searches);
    if (which == 1) searches = std::min(searches, most - passes.searches);
    // A small task is answered by one pass, and never overtakes an older one that did not fit.
    if (passes.searches > 0 && passes.searches + searches > most) break;
    passes.parts.push_back({.id = task.id, .searches = searches});
    passes.searches += searches;
    task.searches -= searches;
  }
  passes.under_way = true;
  passes.estimated_ms = estimator_.PassMs(group.shape, passes.searches);
  passes.took_ms = 0;
  if (which == 1) ++large_passes_[ToIndex(group.lane)];
  group.searches -= passes.searches;
  std::erase_if(group.tasks, [](const Task& task) { return task.searches == 0; });
}

void Schedule::EndPass(Group& group, std::size_t which) {
  group.passes[which].under_way = false;
  group.passes[which].parts.clear();
  if (which == 1) --large_passes_[ToIndex(group.lane)];
}

bool Schedule::EndsEarly(const Slice& slice, const Request& request) const {
  if (request.lane != slice.lane) return request.lane < slice.lane;
  if (slice.hard || request.hard) return false;
  const double ms = estimator_.PassMs(request.shape, request.searches);
  if (ms > kShortMs || 2 * ms > slice.estimated_ms) return false;
  if (!request.shape.IsLike(slice.shape)) return true;
  const Group* const group = Find(slice.lane, false, slice.shape);
  return group != nullptr && group->IsLarge(request.searches) != slice.large;
}

void Schedule::Charge(const Slice& slice, double ms) {
  ChargeTurns(slice, ms - slice.charged_ms);
  Group* const group = Find(slice.lane, slice.hard, slice.shape);
  if (group == nullptr) return;
  SizePasses(*group);
  if (slice.hard) return TakeOff(*group, slice);
  Passes& passes = group->passes[slice.large ? 1 : 0];
  if (slice.runs_to_end) return passes.on_device_ms.reset();
  passes.took_ms += ms;
  if (slice.ends && passes.under_way) EndPass(*group, slice.large ? 1 : 0);
}

void Schedule::ChargeTurns(const Slice& slice, double ms) {
  lane_virtual_ms_[ToIndex(slice.lane)] += ms / kWeights[ToIndex(slice.lane)];
  Group* const group = Find(slice.lane, slice.hard, slice.shape);
  if (group == nullptr) return;
  FindOrAddCollection(*group).virtual_ms += ms;
  group->virtual_ms += ms;
  if (slice.hard) return;
  const std::size_t which = slice.large ? 1 : 0;
  group->passes[which].virtual_ms += ms / kPassWeights[which];
}

// Subtracts the work that a slice did. Work beyond a task's estimate is not subtracted from other
// tasks.
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
  return estimator_.SearchesWithin(shape, ms, PassSearchesMax(shape));
}

void Schedule::SizePasses(Group& group) const {
  group.slice_searches = SearchesOfSlice(group.shape);
  Passes& small = group.passes[0];
  Passes& large = group.passes[1];
  if (group.hard || !group.shape.can_pause) {
    small.searches_max = large.searches_max = group.slice_searches;
    return;
  }
  large.searches_max = estimator_.SearchesWithin(
      group.shape, std::numeric_limits<double>::infinity(), PassSearchesMax(group.shape));
  small.searches_max = estimator_.SearchesThatPay(group.shape, large.searches_max);
}

double Schedule::SearchesMs(const CostEstimator::Shape& shape, std::uint32_t pass_searches,
                            std::uint64_t searches) const {
  const std::uint64_t passes = searches / pass_searches;
  const auto rest = static_cast<std::uint32_t>(searches % pass_searches);
  const double of_passes =
      passes > 0 ? static_cast<double>(passes) * estimator_.PassMs(shape, pass_searches) : 0;
  return of_passes + (rest > 0 ? estimator_.PassMs(shape, rest) : 0);
}

double Schedule::BacklogMs(const Group& group, std::size_t which, std::uint32_t more) const {
  return SearchesMs(group.shape, group.passes[which].searches_max,
                    WaitingSearches(group, which) + more) +
         group.passes[which].LeftMs();
}

double Schedule::BacklogMs(const Group& group) const {
  if (!group.hard) return BacklogMs(group, 0) + BacklogMs(group, 1);
  return SearchesMs(group.shape, group.slice_searches, group.searches) + group.work_ms;
}

double Schedule::OwnMs(const Group& group, std::uint32_t searches) const {
  const std::size_t own = group.IsLarge(searches) ? 1 : 0;
  const std::size_t other = 1 - own;
  const double own_ms = BacklogMs(group, own, searches);
  // Meanwhile the other passes get their share, plus their slice that is under way.
  const double slice_ms = group.passes[other].IsUnderWay() ? kSliceMs : 0;
  return own_ms + std::min(BacklogMs(group, other),
                           slice_ms + own_ms * kPassWeights[other] / kPassWeights[own]);
}

double Schedule::WithOtherLanes(Lane lane, double ms) const {
  std::array<double, kLaneCount> backlog{};
  for (const Group& group : groups_) {
    if (group.lane != lane) backlog[ToIndex(group.lane)] += BacklogMs(group);
  }
  double total = ms;
  for (std::size_t other = 0; other < kLaneCount; ++other) {
    total += std::min(backlog[other], ms * kWeights[other] / kWeights[ToIndex(lane)]);
  }
  return total;
}

double Schedule::AnswerMs(const Request& request) const {
  const Group* const found = Find(request.lane, request.hard, request.shape);
  const Group created = found == nullptr ? NewGroup(request) : Group();
  const Group& own = found == nullptr ? created : *found;
  const double own_ms =
      request.hard ? BacklogMs(own) + SearchesMs(own.shape, own.slice_searches, request.searches) +
                         request.work_ms
                   : OwnMs(own, request.searches);
  // Meanwhile each other group of the collection gets as much time as this group, up to its
  // backlog. And each other collection of the lane gets as much as this collection, up to its
  // backlog.
  double collection_ms = own_ms;
  for (const Group& group : groups_) {
    if (&group != found && group.lane == request.lane &&
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
    if (group.IsIdle()) continue;
    if (group.hard || group.IsUnderWay()) return false;
    total += BacklogMs(group);
  }
  return total <= ms;
}

}  // namespace simile::engine
