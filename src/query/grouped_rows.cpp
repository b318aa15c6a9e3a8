#include "query/grouped_rows.h"

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
  RowMask both = grouped;
  both.IntersectWith(*mask);
  const std::uint64_t rows = mask->AllowedCount();
  return {rows, rows - both.AllowedCount()};
}

}  // namespace

absl::StatusOr<GroupedRows::Counts> GroupedRows::Count(std::string_view field, const RowMask* mask,
                                                       std::span<const Row> excluded,
                                                       base::LongWork& work) {
  const auto grouped = snapshot_.filters->RowsWithKeywords(field, work);
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
