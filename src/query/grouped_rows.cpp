#include "query/grouped_rows.h"

#include <bit>
#include <cstddef>
#include <memory>

#include "filter/filters.h"

namespace simile::query {
namespace {

// A word of both masks, and one excluded row, estimated.
constexpr std::uint64_t kWordNs = 2;
constexpr std::uint64_t kRowLookedAtNs = 2;

GroupedRows::Counts CountRows(const RowMask* mask, const RowMask& grouped) {
  if (mask == nullptr) {
    return {grouped.row_count(), grouped.row_count() - grouped.AllowedCount()};
  }
  GroupedRows::Counts counts;
  for (std::size_t word = 0; word < mask->words().size(); ++word) {
    const std::uint64_t passing = mask->words()[word];
    counts.rows += static_cast<std::uint64_t>(std::popcount(passing));
    counts.without_group +=
        static_cast<std::uint64_t>(std::popcount(passing & ~grouped.words()[word]));
  }
  return counts;
}

}  // namespace

absl::StatusOr<GroupedRows::Counts> GroupedRows::Count(std::string_view field, const RowMask* mask,
                                                       std::span<const Row> excluded,
                                                       base::LongWork& work) {
  const auto grouped = snapshot_.filters->RowsInGroups(field, work);
  if (!grouped.ok()) return grouped.status();
  const auto [known, is_new] = known_.try_emplace({field, mask});
  if (is_new) {
    absl::Status status = work.Did((*grouped)->words().size() * kWordNs);
    if (!status.ok()) return status;
    known->second = CountRows(mask, **grouped);
  }
  Counts counts = known->second;
  for (const Row row : excluded) {
    if (mask != nullptr && !mask->Allows(row)) continue;
    --counts.rows;
    if (!(*grouped)->Allows(row)) --counts.without_group;
  }
  absl::Status status = work.Did(excluded.size() * kRowLookedAtNs);
  if (!status.ok()) return status;
  return counts;
}

}  // namespace simile::query
