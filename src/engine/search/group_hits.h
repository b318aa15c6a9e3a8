#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include "engine/search/ranking.h"
#include "engine/search/resolved_query.h"

namespace simile::engine {

// Finds the best k groups of a query from exact rankings of rows. The first ranking is over all
// rows that pass, the next over those of them that belong to a group not seen yet, and so on until
// there are k groups or no rows: the first row of a group in a ranking is the group's best, and no
// group missing from a ranking is better than one in it.
class GroupHits {
 public:
  //   snapshot  borrowed
  GroupHits(const ResolvedQuery& query, const Snapshot& snapshot);

  // What the next ranking must be: how many rows, and which may be among them (null: all).
  std::uint32_t rows_wanted() const { return rows_wanted_; }
  // Built by the first call and kept until ReadRanking, since it takes a bit a row.
  const RowMask* Mask();

  // Adds the groups of the ranking wanted. Returns whether no further ranking is needed.
  //   hits  fewer than rows_wanted() when no more rows pass
  bool ReadRanking(std::span<const Hit> hits);

  // Completes the groups of which the rankings held too few rows. Call once, after the last one.
  // Errors: Ranking's. Cost: the rows of those groups are scored, all groups together.
  absl::Status CompleteGroups(Ranking& ranking);
  // The best k groups, best first.
  std::vector<HitGroup> Groups() &&;

 private:
  struct Group {
    std::uint32_t keyword = 0;
    std::vector<Hit> hits;
    bool complete = false;  // it has group_size_ rows, or no others pass
  };
  void Add(const Hit& hit, Group& group) const;

  const ResolvedQuery& query_;
  const Snapshot& snapshot_;
  const filter::KeywordColumn& column_;
  const std::size_t k_;
  const std::size_t group_size_;
  std::vector<Group> groups_;                                 // in the order of their best rows
  absl::flat_hash_map<std::uint32_t, std::size_t> index_of_;  // in groups_, by keyword
  std::uint32_t rows_wanted_ = 0;
  std::optional<RowMask> others_;  // the rows of groups not seen yet, while a ranking needs them
};

}  // namespace simile::engine
