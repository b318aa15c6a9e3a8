#include "query/existing_items.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/nearest_name.h"

namespace simile::query {

absl::StatusOr<ExistingItems> ExistingItems::Create(const engine::Snapshot& snapshot,
                                                    std::string_view required_filter,
                                                    std::string_view field) {
  if (required_filter.empty()) return ExistingItems(snapshot, nullptr);
  auto rows = snapshot.filters->Rows(required_filter);
  if (!rows.ok()) {
    return base::Error(base::ReasonOf(rows.status()),
                       fmt::format("{}, {}", field, std::string(rows.status().message())), field);
  }
  return ExistingItems(snapshot, *std::move(rows));
}

std::optional<Row> ExistingItems::Find(std::string_view id) const {
  const std::optional<Row> row = snapshot_->dataset->ids.Find(id);
  return row && (mask_ == nullptr || mask_->Allows(*row)) ? row : std::nullopt;
}

std::string ExistingItems::NotFoundText(std::string_view kind, std::string_view id,
                                        const data::IdIndex& ids) const {
  const std::string offer = mask_ == nullptr ? base::DidYouMean(ids.Nearest(id)) : "";
  return fmt::format("no {} {} in {}{}{}", kind, base::Quoted(id), snapshot_->collection,
                     offer.empty() ? "" : ".", offer);
}

}  // namespace simile::query
