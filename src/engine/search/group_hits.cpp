#include "engine/search/group_hits.h"

#include <algorithm>
#include <utility>

#include "simile/limits.h"

namespace simile::engine {
namespace {

// A first ranking this many times longer than the rows of the answer mostly holds all groups.
constexpr std::size_t kRowsPerHit = 3;
constexpr std::uint32_t kRowsMin = 64;

}  // namespace

GroupHits::GroupHits(const ResolvedQuery& query, const Snapshot& snapshot)
    : query_(query),
      snapshot_(snapshot),
      column_(query.grouping->field.column()),
      k_(query.k),
      group_size_(query.grouping->group_size),
      rows_wanted_(FirstRowsWanted(query)) {}

std::uint32_t GroupHits::FirstRowsWanted(const ResolvedQuery& query) {
  const std::size_t rows = kRowsPerHit * query.k * query.grouping->group_size;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, kRowsMin, kHitsMax));
}

const RowMask* GroupHits::Mask() {
  if (groups_.empty()) return query_.mask.get();
  if (!others_) {
    others_.emplace(snapshot_.row_count());
    for (std::uint32_t keyword = 0; keyword < column_.keyword_count(); ++keyword) {
      if (!index_of_.contains(keyword)) column_.AddRowsOf(keyword, *others_);
    }
    if (query_.mask != nullptr) others_->IntersectWith(*query_.mask);
  }
  return &*others_;
}

bool GroupHits::ReadRanking(std::span<const Hit> hits) {
  others_.reset();
  const bool exhausted = hits.size() < rows_wanted_;
  const std::size_t first_new = groups_.size();
  std::vector<std::uint32_t> keywords;
  for (const Hit& hit : hits) {
    query_.grouping->field.KeywordsOf(hit.row, keywords);
    for (const std::uint32_t keyword : keywords) {
      const auto [found, is_new] = index_of_.try_emplace(keyword, groups_.size());
      if (is_new) groups_.emplace_back().keyword = keyword;
      // A group seen before gets no rows from this ranking: it does not hold all of its best.
      if (found->second >= first_new) Add(hit, groups_[found->second]);
    }
  }
  for (std::size_t i = first_new; i < groups_.size(); ++i) {
    const std::size_t rows = column_.RowsOf(groups_[i].keyword);
    groups_[i].complete = exhausted || groups_[i].hits.size() == std::min(group_size_, rows);
  }
  rows_wanted_ = std::min(2 * rows_wanted_, kHitsMax);
  return exhausted || groups_.size() >= k_;
}

const RowMask* GroupHits::RowsToComplete() {
  if (groups_.size() > k_) groups_.resize(k_);
  for (Group& group : groups_) {
    if (group.complete) continue;
    if (!others_) others_.emplace(snapshot_.row_count());
    column_.AddRowsOf(group.keyword, *others_);
    group.hits.clear();
    group.best_buffer.resize(certificate::TopK::CapacityFor(group_size_, snapshot_.row_count()));
    group.best = certificate::TopK(group.best_buffer, group_size_, query_.score_threshold);
  }
  if (!others_) return nullptr;
  if (query_.mask != nullptr) others_->IntersectWith(*query_.mask);
  return &*others_;
}

void GroupHits::Offer(RankKey key) {
  query_.grouping->field.KeywordsOf(key.row(), keywords_);
  for (const std::uint32_t keyword : keywords_) {
    const auto found = index_of_.find(keyword);
    if (found == index_of_.end() || found->second >= groups_.size()) continue;
    Group& group = groups_[found->second];
    if (!group.complete) group.best.Offer(key);
  }
}

void GroupHits::CompleteByOffers() {
  for (Group& group : groups_) {
    if (group.complete) continue;
    for (const RankKey key : group.best.Sorted()) group.hits.push_back({key.row(), key.score()});
  }
  others_.reset();
}

void GroupHits::Complete(std::span<const Hit> hits) {
  std::unordered_map<std::uint32_t, Group*> incomplete;
  for (Group& group : groups_) {
    if (group.complete) continue;
    incomplete.emplace(group.keyword, &group);
  }
  std::vector<std::uint32_t> keywords;
  for (const Hit& hit : hits) {
    if (incomplete.empty()) break;
    query_.grouping->field.KeywordsOf(hit.row, keywords);
    for (const std::uint32_t keyword : keywords) {
      const auto found = incomplete.find(keyword);
      if (found == incomplete.end()) continue;
      Group& group = *found->second;
      Add(hit, group);
      if (group.hits.size() == group_size_) incomplete.erase(found);
    }
  }
  others_.reset();
}

std::vector<HitGroup> GroupHits::Groups() && {
  std::vector<HitGroup> groups;
  groups.reserve(groups_.size());
  for (Group& group : groups_) {
    groups.push_back({query_.grouping->field.Spelling(group.keyword, query_.existing.get()),
                      std::move(group.hits)});
  }
  return groups;
}

void GroupHits::Add(const Hit& hit, Group& group) const {
  if (group.hits.size() < group_size_) group.hits.push_back(hit);
}

}  // namespace simile::engine
