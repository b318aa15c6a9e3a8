#include "engine/search/group_hits.h"

#include <algorithm>
#include <utility>

#include "simile/limits.h"

namespace simile::engine {
namespace {

// The first ranking is this many times longer than the rows of the answer. It then usually holds
// all groups.
constexpr std::size_t kRowsPerHit = 3;
constexpr std::uint32_t kRowsMin = 64;

// A piece of work ends after an estimated 2 ms. A mask over 5,000,000 rows of 100,000 groups took
// 18 ms, so 4 ns a row; the other constants are guesses.
constexpr std::uint64_t kPieceNs = 2'000'000;
constexpr std::uint64_t kRowOfMaskNs = 4;
constexpr std::uint64_t kGroupNs = 20;
constexpr std::uint64_t kGroupsOfRowNs = 1'500;

}  // namespace

GroupHits::GroupHits(const ResolvedQuery& query, const Snapshot& snapshot)
    : query_(query),
      snapshot_(snapshot),
      field_(query.grouping->field),
      k_(query.k),
      group_size_(query.grouping->group_size),
      rows_wanted_(FirstRowsWanted(query)) {}

std::uint32_t GroupHits::FirstRowsWanted(const ResolvedQuery& query) {
  const std::size_t rows = kRowsPerHit * query.k * query.grouping->group_size;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, kRowsMin, kHitsMax));
}

template <class DoOne>
bool GroupHits::DoSome(std::size_t count, DoOne do_one) {
  for (std::uint64_t ns = 0; position_ < count && ns < kPieceNs; ++position_) {
    ns += do_one(position_);
  }
  if (position_ < count) return false;
  position_ = 0;
  return true;
}

GroupHits::Next GroupHits::Work(std::span<const Hit> hits) {
  switch (stage_) {
    case Stage::kReading: {
      const auto read = [&](std::size_t i) {
        Read(hits[i]);
        return kGroupsOfRowNs;
      };
      if (DoSome(hits.size(), read)) EndReading(hits.size());
      return Next::kWork;
    }
    case Stage::kMaskingOthers: {
      const auto add = [&](std::size_t i) {
        const auto number = static_cast<std::uint32_t>(i);
        return index_of_.contains(number) ? kGroupNs : AddRows(number);
      };
      if (!DoSome(field_.number_end(), add)) return Next::kWork;
      EndMask();
      stage_ = Stage::kReading;
      return Next::kRanking;
    }
    case Stage::kMaskingRows:
      if (!DoSome(groups_.size(), [&](std::size_t i) { return BeginCompleting(groups_[i]); })) {
        return Next::kWork;
      }
      EndMask();
      stage_ = Stage::kCompleting;
      return Next::kRows;
    case Stage::kCompleting:
      if (CompleteSome(hits)) {
        own_mask_.reset();
        stage_ = Stage::kNaming;
      }
      return Next::kWork;
    case Stage::kNaming:
      break;
  }
  const bool named = DoSome(groups_.size(), [&](std::size_t i) { return Name(groups_[i]); });
  return named ? Next::kDone : Next::kWork;
}

void GroupHits::Read(const Hit& hit) {
  field_.ReadGroups(hit.row, numbers_);
  for (const std::uint32_t number : numbers_) {
    const auto [found, is_new] = index_of_.try_emplace(number, groups_.size());
    if (is_new) groups_.emplace_back().number = number;
    // A group from an earlier ranking gets no rows from this one, which may miss some of the
    // group's best rows.
    if (found->second >= first_new_) Add(hit, groups_[found->second]);
  }
}

// Decides the step after the ranking.
void GroupHits::EndReading(std::size_t hit_count) {
  own_mask_.reset();
  const bool exhausted = hit_count < rows_wanted_;
  for (; first_new_ < groups_.size(); ++first_new_) {
    Group& group = groups_[first_new_];
    const std::size_t rows = field_.CountRows(group.number);
    group.complete = exhausted || group.hits.size() == std::min(group_size_, rows);
  }
  rows_wanted_ = std::min(2 * rows_wanted_, kHitsMax);
  if (exhausted || groups_.size() >= k_) {
    if (groups_.size() > k_) groups_.resize(k_);
    const bool complete = std::ranges::all_of(groups_, &Group::complete);
    stage_ = complete ? Stage::kNaming : Stage::kMaskingRows;
  } else {
    stage_ = Stage::kMaskingOthers;
  }
  if (stage_ != Stage::kNaming) own_mask_.emplace(snapshot_.row_count());
}

std::uint64_t GroupHits::AddRows(std::uint32_t group) {
  field_.AddRows(group, *own_mask_);
  return kGroupNs + field_.LooksFor(group) * kRowOfMaskNs;
}

void GroupHits::EndMask() {
  if (query_.mask != nullptr) own_mask_->IntersectWith(*query_.mask);
}

std::uint64_t GroupHits::BeginCompleting(Group& group) {
  if (group.complete) return kGroupNs;
  ++incomplete_;
  group.hits.clear();
  if (!query_.order) {
    group.best_buffer.resize(certificate::TopK::CapacityFor(group_size_, snapshot_.row_count()));
    group.best = certificate::TopK(group.best_buffer, group_size_, query_.score_threshold);
  }
  return AddRows(group.number);
}

void GroupHits::Offer(RankKey key) {
  field_.ReadGroups(key.row(), numbers_);
  for (const std::uint32_t number : numbers_) {
    const auto found = index_of_.find(number);
    if (found == index_of_.end() || found->second >= groups_.size()) continue;
    Group& group = groups_[found->second];
    if (!group.complete) group.best.Offer(key);
  }
}

// Completes groups from the offered rows, or from all rows in the query's order.
bool GroupHits::CompleteSome(std::span<const Hit> hits) {
  if (!query_.order) {
    return DoSome(groups_.size(), [&](std::size_t i) -> std::uint64_t {
      Group& group = groups_[i];
      if (group.complete) return kGroupNs;
      for (const RankKey key : group.best.Sorted()) group.hits.push_back({key.row(), key.score()});
      return group.best_buffer.size() * kGroupNs;
    });
  }
  return DoSome(incomplete_ == 0 ? 0 : hits.size(), [&](std::size_t i) {
    field_.ReadGroups(hits[i].row, numbers_);
    for (const std::uint32_t number : numbers_) {
      const auto found = index_of_.find(number);
      if (found == index_of_.end() || found->second >= groups_.size()) continue;
      Group& group = groups_[found->second];
      if (group.complete) continue;
      Add(hits[i], group);
      group.complete = group.hits.size() == group_size_;
      if (group.complete) --incomplete_;
    }
    return kGroupsOfRowNs;
  });
}

std::uint64_t GroupHits::Name(Group& group) {
  answer_.push_back({field_.Text(group.number), std::move(group.hits)});
  return kGroupNs;
}

void GroupHits::Add(const Hit& hit, Group& group) const {
  if (group.hits.size() < group_size_) group.hits.push_back(hit);
}

}  // namespace simile::engine
