#include "engine/group_hits.h"

#include <algorithm>
#include <string>
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
      k_(question.k),
      group_size_(question.grouping->group_size),
      mask_(question.mask.get()) {
  const std::size_t rows = kRowsPerHit * k_ * group_size_;
  rows_wanted_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, kRowsMin, kRowsMax));
}

bool GroupHits::Take(std::span<const Hit> hits) {
  const bool exhausted = hits.size() < rows_wanted_;
  const std::size_t first_new = groups_.size();
  std::vector<std::uint32_t> keywords;
  for (const Hit& hit : hits) {
    question_.grouping->field.KeywordsOf(hit.row, keywords);
    for (const std::uint32_t keyword : keywords) {
      const auto [found, is_new] = place_.try_emplace(keyword, groups_.size());
      if (is_new) groups_.emplace_back().keyword = keyword;
      // Of the groups seen before, this ranking holds only some rows.
      if (found->second < first_new) continue;
      Group& group = groups_[found->second];
      if (group.hits.size() < group_size_) group.hits.push_back(hit);
    }
  }
  for (std::size_t i = first_new; i < groups_.size(); ++i) {
    groups_[i].whole = exhausted || groups_[i].hits.size() == group_size_;
  }
  if (exhausted || groups_.size() >= k_) return true;
  WantOthers();
  return false;
}

void GroupHits::WantOthers() {
  const filter::KeywordColumn& column = question_.grouping->field.column();
  others_.emplace(snapshot_.row_count());
  for (std::size_t keyword = 0; keyword < column.keyword_count(); ++keyword) {
    if (!place_.contains(static_cast<std::uint32_t>(keyword))) column.AddRowsOf(keyword, *others_);
  }
  if (question_.mask != nullptr) others_->IntersectWith(*question_.mask);
  mask_ = &*others_;
  rows_wanted_ = std::min(2 * rows_wanted_, kRowsMax);
}

absl::Status GroupHits::Fill(Ranking& ranking) {
  if (groups_.size() > k_) groups_.resize(k_);
  const filter::KeywordColumn& column = question_.grouping->field.column();
  for (Group& group : groups_) {
    if (group.whole) continue;
    RowMask rows(snapshot_.row_count());
    column.AddRowsOf(group.keyword, rows);
    if (question_.mask != nullptr) rows.IntersectWith(*question_.mask);
    absl::StatusOr<std::vector<Hit>> hits = ranking.BestAtOnce(&rows, group_size_);
    if (!hits.ok()) return hits.status();
    group.hits = *std::move(hits);
  }
  return absl::OkStatus();
}

std::vector<HitGroup> GroupHits::Groups() && {
  const filter::KeywordColumn& column = question_.grouping->field.column();
  std::vector<HitGroup> groups;
  groups.reserve(groups_.size());
  for (Group& group : groups_) {
    groups.push_back({std::string(column.Spelling(group.keyword)), std::move(group.hits)});
  }
  return groups;
}

}  // namespace simile::engine
