#include "query/grouped_rows.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace simile::query {
namespace {

// A word of both masks, one excluded row by a mask, and one whose payload is read, estimated.
constexpr std::uint64_t kWordNs = 2;
constexpr std::uint64_t kRowLookedAtNs = 2;
constexpr std::uint64_t kRowReadNs = 300;

// Up to this number of excluded rows are read one by one. The mask of the grouped rows may be gone
// from the cache, and making it again takes a look at all rows.
constexpr std::size_t kRowsReadMax = 16;

}  // namespace

absl::StatusOr<GroupedRows::Counts> GroupedRows::Count(std::string_view name,
                                                       const filter::GroupField& field,
                                                       const RowMask* mask,
                                                       std::span<const Row> excluded,
                                                       base::LongWork& work) {
  const auto passing = CountPassing(name, mask, work);
  if (!passing.ok()) return passing.status();
  Counts counts{passing->rows, passing->rows - passing->in_groups};
  if (excluded.empty()) return counts;
  std::shared_ptr<const RowMask> grouped;  // null: rows are read
  if (excluded.size() > kRowsReadMax) {
    auto found = snapshot_.filters->RowsInGroups(name, work);
    if (!found.ok()) return found.status();
    grouped = *std::move(found);
  }
  std::vector<std::uint32_t> groups;
  const auto has_group = [&](Row row) {
    if (grouped != nullptr) return grouped->Allows(row);
    field.GroupsOf(row, groups);
    return !groups.empty();
  };
  for (const Row row : excluded) {
    if (mask != nullptr && !mask->Allows(row)) continue;
    --counts.rows;
    if (!has_group(row)) --counts.without_group;
  }
  absl::Status status =
      work.Did(excluded.size() * (grouped != nullptr ? kRowLookedAtNs : kRowReadNs));
  if (!status.ok()) return status;
  return counts;
}

absl::StatusOr<filter::GroupedRowCounts> GroupedRows::CountPassing(std::string_view name,
                                                                   const RowMask* mask,
                                                                   base::LongWork& work) {
  if (mask == snapshot_.searchable.get()) {
    return snapshot_.filters->CountSearchable(name, mask, work);
  }
  const auto known = known_.find({name, mask});
  if (known != known_.end()) return known->second;
  const auto grouped = snapshot_.filters->RowsInGroups(name, work);
  if (!grouped.ok()) return grouped.status();
  absl::Status status = work.Did((*grouped)->words().size() * kWordNs);
  if (!status.ok()) return status;
  const auto counts = filter::CountRowsInGroups(mask, **grouped);
  known_.try_emplace({name, mask}, counts);
  return counts;
}

}  // namespace simile::query
