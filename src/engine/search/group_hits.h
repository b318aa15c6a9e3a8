#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "certificate/top_k.h"
#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Finds the best k groups of a query from exact rankings of rows. The first ranking is over all
// rows that pass, the next over those of them that belong to a group not seen yet, and so on until
// there are k groups or no rows: the first row of a group in a ranking is the group's best, and no
// group missing from a ranking is better than one in it.
class GroupHits {
 public:
  //   snapshot  borrowed
  GroupHits(const ResolvedQuery& query, const Snapshot& snapshot);

  // The length of the first ranking.
  static std::uint32_t FirstRowsWanted(const ResolvedQuery& query);
  // What the next ranking must be: how many rows, and which may be among them (null: all).
  std::uint32_t rows_wanted() const { return rows_wanted_; }
  // Built by the first call and kept until ReadRanking, since it takes a bit a row.
  const RowMask* Mask();

  // Adds the groups of the ranking wanted. Returns whether no further ranking is needed.
  //   hits  fewer than rows_wanted() when no more rows pass
  bool ReadRanking(std::span<const Hit> hits);

  // After the last ranking: the rows of the groups of which the rankings held too few, all groups
  // together; null when there are none. All of them must be offered, or ranked in the query's
  // order.
  const RowMask* RowsToComplete();
  // One of those rows, in any order, with its score.
  void Offer(RankKey key);
  // Completes those groups: by the rows offered, or by all rows in the query's order.
  // REQUIRES: RowsToComplete was not null.
  void CompleteByOffers();
  void Complete(std::span<const Hit> hits);
  // The best k groups, best first.
  std::vector<HitGroup> Groups() &&;

 private:
  struct Group {
    std::uint32_t keyword = 0;
    std::vector<Hit> hits;
    bool complete = false;  // it has group_size_ rows, or no others pass
    // Of those offered.
    std::vector<RankKey> best_buffer;
    certificate::TopK best;
  };
  void Add(const Hit& hit, Group& group) const;

  const ResolvedQuery& query_;
  const Snapshot& snapshot_;
  const filter::KeywordColumn& column_;
  const std::size_t k_;
  const std::size_t group_size_;
  std::vector<Group> groups_;                                // in the order of their best rows
  std::unordered_map<std::uint32_t, std::size_t> index_of_;  // in groups_, by keyword
  std::uint32_t rows_wanted_ = 0;
  std::vector<std::uint32_t> keywords_;  // of the row at hand
  std::optional<RowMask> others_;        // the rows that a ranking needs which is under way
};

}  // namespace simile::engine
