#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simile/matrix_view.h"

namespace simile::data {

// For every user the item rows that the user has interacted with, ascending and distinct.
// One flat array; immutable; safe to share.
class SeenSets {
 public:
  SeenSets() = default;
  // pairs: (user row, item row) in any order, repeats allowed.
  // Cost: O(n log n) for n pairs, in place.
  static SeenSets FromPairs(std::size_t user_count, std::vector<std::pair<Row, Row>> pairs);

  // REQUIRES: user < user_count, or no interactions were loaded at all (then empty).
  std::span<const Row> Of(Row user) const;
  // The items that some user has seen, those seen by most users first, equal ones by row.
  // Cost: one pass over all pairs, and a sort of the items.
  std::vector<Row> MostSeen(std::size_t item_count) const;
  std::uint64_t pair_count() const { return rows_.size(); }
  std::uint64_t bytes() const;

 private:
  std::vector<std::uint64_t> ends_;
  std::vector<Row> rows_;
};

}  // namespace simile::data
