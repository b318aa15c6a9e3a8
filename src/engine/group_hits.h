#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include "engine/question.h"
#include "engine/ranking.h"

namespace simile::engine {

// Finds the best k groups of a question out of exact rankings of rows. The first ranking is over
// all rows that pass, the second over those of them that belong to a group not seen in the first,
// and so on until there are k groups or no rows: what a ranking shows first of a group is the best
// of it, and no group that it does not show is better than those that it does.
class GroupHits {
 public:
  //   snapshot  borrowed
  GroupHits(const Question& question, const Snapshot& snapshot);

  // The ranking to take in next: how many rows, and which may be among them (null: all).
  std::uint32_t rows_wanted() const { return rows_wanted_; }
  // Made when it is asked for and kept until Take, since it takes a bit a row.
  const RowMask* Mask();

  // Whether no further ranking is needed.
  //   hits  of the ranking wanted; fewer than that when there are no more
  bool Take(std::span<const Hit> hits);

  // Fills up the groups that the rankings have shown too few rows of. Call once, when Take has said
  // true.
  // Errors: Ranking's. Cost: the rows of those groups are scored, all groups together.
  absl::Status Fill(Ranking& ranking);
  // The best k groups, best first.
  std::vector<HitGroup> Groups() &&;

 private:
  struct Group {
    std::uint32_t keyword = 0;
    std::vector<Hit> hits;
    bool whole = false;  // nothing is missing: it is full, or has no other rows
  };
  void Add(const Hit& hit, Group& group) const;

  const Question& question_;
  const Snapshot& snapshot_;
  const filter::KeywordColumn& column_;
  const std::size_t k_;
  const std::size_t group_size_;
  std::vector<Group> groups_;                              // in the order of their best rows
  absl::flat_hash_map<std::uint32_t, std::size_t> place_;  // in groups_, by keyword
  std::uint32_t rows_wanted_ = 0;
  std::optional<RowMask> others_;  // the rows of groups not seen yet, while a ranking needs them
};

}  // namespace simile::engine
