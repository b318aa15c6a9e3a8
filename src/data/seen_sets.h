#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simile/matrix_view.h"

namespace simile::data {

// The item rows that each user, or each visitor, has interacted with: ascending and distinct, in
// one flat array. Immutable; safe to share.
class SeenSets {
 public:
  SeenSets() = default;
  //   pairs  (user row, item row) in any order, repeats allowed
  // Cost: O(n log n) for n pairs, in place.
  static SeenSets FromPairs(std::size_t user_count, std::vector<std::pair<Row, Row>> pairs);

  // Empty when no interactions were loaded. REQUIRES otherwise: user < user_count.
  std::span<const Row> Of(Row user) const;
  // Adds to each item's count the number of users who have seen it. Cost: O(pair_count()).
  void AddCounts(std::span<std::uint32_t> counts) const;
  // The items with a count, by descending count, then by row.
  static std::vector<Row> ByCount(std::span<const std::uint32_t> counts);
  std::uint64_t pair_count() const { return rows_.size(); }
  std::uint64_t bytes() const;
  // The bytes() of sets of this size; pairs are distinct.
  static std::uint64_t BytesFor(std::uint64_t user_count, std::uint64_t pair_count) {
    return user_count * sizeof(std::uint64_t) + pair_count * sizeof(Row);
  }

 private:
  std::vector<std::uint64_t> ends_;
  std::vector<Row> rows_;
};

}  // namespace simile::data
