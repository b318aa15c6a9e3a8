#include "data/seen_sets.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace simile::data {

SeenSets SeenSets::FromPairs(std::size_t user_count, std::vector<std::pair<Row, Row>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  SeenSets sets;
  sets.ends_.assign(user_count, 0);
  sets.rows_.reserve(pairs.size());
  for (const auto& [user, item] : pairs) {
    assert(user < user_count);
    sets.rows_.push_back(item);
    ++sets.ends_[user];
  }
  std::uint64_t end = 0;
  for (std::uint64_t& count : sets.ends_) count = end += count;
  return sets;
}

std::span<const Row> SeenSets::Of(Row user) const {
  if (ends_.empty()) return {};
  assert(user < ends_.size());
  const std::uint64_t begin = user == 0 ? 0 : ends_[user - 1];
  return std::span(rows_).subspan(begin, ends_[user] - begin);
}

void SeenSets::AddCounts(std::span<std::uint32_t> counts) const {
  for (const Row item : rows_) ++counts[item];
}

std::vector<Row> SeenSets::ByCount(std::span<const std::uint32_t> counts) {
  std::vector<Row> seen;
  for (std::size_t item = 0; item < counts.size(); ++item) {
    if (counts[item] > 0) seen.push_back(static_cast<Row>(item));
  }
  std::ranges::stable_sort(seen, std::greater<>(), [&](Row item) { return counts[item]; });
  seen.shrink_to_fit();
  return seen;
}

std::uint64_t SeenSets::bytes() const {
  return ends_.capacity() * sizeof(std::uint64_t) + rows_.capacity() * sizeof(Row);
}

}  // namespace simile::data
