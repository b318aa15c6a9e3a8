#include "query/existing_items.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/nearest_name.h"

namespace simile::query {

absl::StatusOr<ExistingItems> ExistingItems::Create(const engine::Snapshot& snapshot,
                                                    std::string_view required_filter,
                                                    std::string_view field, base::LongWork& work) {
  if (required_filter.empty()) return ExistingItems(snapshot, nullptr, 0);
  const auto filter = snapshot.filters->Prepare(required_filter, work);
  absl::Status status = filter.status();
  if (status.ok()) status = snapshot.filters->CheckLooks(filter->looks);
  if (status.ok()) {
    auto rows = snapshot.filters->Rows(*filter, work);
    if (rows.ok()) return ExistingItems(snapshot, *std::move(rows), filter->looks);
    status = rows.status();
  }
  const base::ErrorReason reason = base::ReasonOf(status);
  if (reason != base::ErrorReason::kInvalidFilter) return status;
  return base::Error(reason, fmt::format("{}, {}", field, std::string(status.message())), field);
}

std::optional<Row> ExistingItems::Find(std::string_view id) const {
  const std::optional<Row> row = snapshot_->dataset->ids.Find(id);
  return row && (mask_ == nullptr || mask_->Allows(*row)) ? row : std::nullopt;
}

absl::StatusOr<std::string> ExistingItems::NotFoundText(std::string_view kind, std::string_view id,
                                                        const data::IdIndex& ids,
                                                        base::LongWork& work) const {
  std::string offer;
  if (mask_ == nullptr) {
    const absl::StatusOr<std::string> nearest = ids.Nearest(id, work);
    if (!nearest.ok()) return nearest.status();
    offer = base::DidYouMean(*nearest);
  }
  return fmt::format("no {} {} in {}{}{}", kind, base::Quoted(id), snapshot_->collection,
                     offer.empty() ? "" : ".", offer);
}

}  // namespace simile::query
