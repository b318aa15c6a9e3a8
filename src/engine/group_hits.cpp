#include "engine/group_hits.h"

#include <algorithm>
#include <utility>

namespace simile::engine {
namespace {

// A first ranking this much longer than there are rows to show mostly holds all groups.
constexpr std::size_t kRowsPerHit = 3;
constexpr std::uint32_t kRowsMin = 64;
constexpr std::uint32_t kRowsMax = 10'000;

}  // namespace

GroupHits::GroupHits(const Question& question, const Snapshot& snapshot)
    : question_(question),
      snapshot_(snapshot),
      column_(question.grouping->field.column()),
      k_(question.k),
      group_size_(question.grouping->group_size) {
  const std::size_t rows = kRowsPerHit * k_ * group_size_;
  rows_wanted_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, kRowsMin, kRowsMax));
}

const RowMask* GroupHits::Mask() {
  if (groups_.empty()) return question_.mask.get();
  if (!others_) {
    others_.emplace(snapshot_.row_count());
    for (std::uint32_t keyword = 0; keyword < column_.keyword_count(); ++keyword) {
      if (!place_.contains(keyword)) column_.AddRowsOf(keyword, *others_);
    }
    if (question_.mask != nullptr) others_->IntersectWith(*question_.mask);
  }
  return &*others_;
}

bool GroupHits::Take(std::span<const Hit> hits) {
  others_.reset();
  const bool exhausted = hits.size() < rows_wanted_;
  const std::size_t first_new = groups_.size();
  std::vector<std::uint32_t> keywords;
  for (const Hit& hit : hits) {
    question_.grouping->field.KeywordsOf(hit.row, keywords);
    for (const std::uint32_t keyword : keywords) {
      const auto [found, is_new] = place_.try_emplace(keyword, groups_.size());
      if (is_new) groups_.emplace_back().keyword = keyword;
      // Of the groups seen before, this ranking holds only some rows.
      if (found->second >= first_new) Add(hit, groups_[found->second]);
    }
  }
  for (std::size_t i = first_new; i < groups_.size(); ++i) {
    const std::size_t rows = column_.RowsOf(groups_[i].keyword);
    groups_[i].whole = exhausted || groups_[i].hits.size() == std::min(group_size_, rows);
  }
  rows_wanted_ = std::min(2 * rows_wanted_, kRowsMax);
  return exhausted || groups_.size() >= k_;
}

absl::Status GroupHits::Fill(Ranking& ranking) {
  if (groups_.size() > k_) groups_.resize(k_);
  RowMask rows(snapshot_.row_count());
  absl::flat_hash_map<std::uint32_t, Group*> unfilled;
  for (Group& group : groups_) {
    if (group.whole) continue;
    unfilled.emplace(group.keyword, &group);
    column_.AddRowsOf(group.keyword, rows);
    group.hits.clear();
  }
  if (unfilled.empty()) return absl::OkStatus();
  if (question_.mask != nullptr) rows.IntersectWith(*question_.mask);
  const absl::StatusOr<std::vector<Hit>> hits = ranking.BestAtOnce(&rows, rows.AllowedCount());
  if (!hits.ok()) return hits.status();
  std::vector<std::uint32_t> keywords;
  for (const Hit& hit : *hits) {
    if (unfilled.empty()) break;
    question_.grouping->field.KeywordsOf(hit.row, keywords);
    for (const std::uint32_t keyword : keywords) {
      const auto found = unfilled.find(keyword);
      if (found == unfilled.end()) continue;
      Group& group = *found->second;
      Add(hit, group);
      if (group.hits.size() == group_size_) unfilled.erase(found);
    }
  }
  return absl::OkStatus();
}

std::vector<HitGroup> GroupHits::Groups() && {
  std::vector<HitGroup> groups;
  groups.reserve(groups_.size());
  for (Group& group : groups_) {
    groups.push_back({column_.Spelling(group.keyword), std::move(group.hits)});
  }
  return groups;
}

void GroupHits::Add(const Hit& hit, Group& group) const {
  if (group.hits.size() < group_size_) group.hits.push_back(hit);
}

}  // namespace simile::engine
