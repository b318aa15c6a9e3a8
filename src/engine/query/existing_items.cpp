#include "engine/query/existing_items.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/nearest_name.h"
#include "filter/required_filter.h"

namespace simile::engine {
namespace {

struct Passing {
  filter::NamedRows named;
  std::uint64_t looks = 0;
};

// Prepares a filter, if it may be a required filter.
//   of_caller  it is of an access file
// Errors: INVALID_FILTER; work's.
absl::StatusOr<filter::PreparedFilter> PrepareRequired(const engine::Snapshot& snapshot,
                                                       std::string_view text,
                                                       const filter::PayloadView& fields,
                                                       bool of_caller, base::LongWork& work) {
  auto filter = snapshot.filters->Prepare(text, fields, work);
  if (!filter.ok()) return filter;
  absl::Status status = filter::CheckRequiredFilter(filter->expression);
  if (status.ok() && of_caller) {
    status = filter::CheckStableFields(filter->expression, snapshot.dataset->payload);
  }
  if (!status.ok()) return status;
  return filter;
}

// Errors: PrepareRequired's.
absl::StatusOr<Passing> RowsThatPass(const engine::Snapshot& snapshot, std::string_view text,
                                     const filter::PayloadView& fields, bool of_caller,
                                     base::LongWork& work) {
  if (text.empty()) return Passing{};
  const auto filter = PrepareRequired(snapshot, text, fields, of_caller, work);
  if (!filter.ok()) return filter.status();
  absl::Status within = snapshot.filters->CheckLooks(filter->looks, fields);
  if (!within.ok()) return within;
  auto rows = snapshot.filters->Rows(*filter, work);
  if (!rows.ok()) return rows.status();
  return Passing{{filter->text, *std::move(rows)}, filter->looks};
}

bool IsInvalidFilter(const absl::Status& status) {
  return !status.ok() && base::ReasonOf(status) == base::ErrorReason::kInvalidFilter;
}

}  // namespace

absl::Status CheckCallerFilter(const engine::Snapshot& snapshot, std::string_view required_filter,
                               base::LongWork& work) {
  return PrepareRequired(snapshot, required_filter, snapshot.filters->payload(), true, work)
      .status();
}

absl::StatusOr<ExistingItems> ExistingItems::Create(const engine::Snapshot& snapshot,
                                                    const RequiredFilters& filters,
                                                    std::string_view field, base::LongWork& work) {
  const filter::PayloadView all_fields(snapshot.filters->payload());
  const auto of_caller = RowsThatPass(snapshot, filters.of_caller, all_fields, true, work);
  if (IsInvalidFilter(of_caller.status())) {
    return base::Error(
        base::ErrorReason::kPermissionDenied,
        fmt::format(
            "the required filter of this caller cannot be applied to {}: the access file needs "
            "another filter, or the collection needs a declared type; the server's log says which",
            snapshot.collection));
  }
  if (!of_caller.ok()) return of_caller.status();
  auto fields = snapshot.filters->FindFields(of_caller->named, work);
  if (!fields.ok()) return fields.status();
  const auto of_request = RowsThatPass(snapshot, filters.of_request, *fields, false, work);
  if (IsInvalidFilter(of_request.status())) {
    return base::Error(base::ErrorReason::kInvalidFilter,
                       fmt::format("{}, {}", field, std::string(of_request.status().message())),
                       field);
  }
  if (!of_request.ok()) return of_request.status();
  // Two masks are combined into a third.
  if (of_caller->named.rows != nullptr && of_request->named.rows != nullptr) {
    absl::Status status = work.Did(snapshot.row_count() / 32);
    if (!status.ok()) return status;
  }
  return ExistingItems(snapshot,
                       snapshot.filters->Intersection(of_caller->named, of_request->named),
                       *std::move(fields), of_caller->looks + of_request->looks, filters.users);
}

std::optional<Row> ExistingItems::Find(std::string_view id) const {
  const std::optional<Row> row = snapshot_->dataset->ids.Find(id);
  return row && (mask() == nullptr || mask()->Allows(*row)) ? row : std::nullopt;
}

std::optional<Row> ExistingItems::FindUser(std::string_view id) const {
  return users_.Find(snapshot_->dataset->profiles.ids, id);
}

std::span<const Row> ExistingItems::SeenBy(std::string_view user_id) const {
  const data::Profiles& profiles = snapshot_->dataset->profiles;
  if (const std::optional<Row> user = FindUser(user_id)) return profiles.seen.Of(*user);
  const std::optional<Row> visitor = users_.Find(profiles.visitor_ids, user_id);
  return visitor ? profiles.visitor_seen.Of(*visitor) : std::span<const Row>();
}

std::uint32_t ExistingItems::SeenCount(std::span<const Row> seen) const {
  return static_cast<std::uint32_t>(mask() == nullptr ? seen.size() : mask()->AllowedCount(seen));
}

absl::StatusOr<std::string> ExistingItems::ItemNotFoundText(std::string_view id, bool may_offer,
                                                            base::LongWork& work) const {
  return NotFoundText("item", id, may_offer && mask() == nullptr, snapshot_->dataset->ids, work);
}

absl::StatusOr<std::string> ExistingItems::UserNotFoundText(std::string_view id, bool may_offer,
                                                            base::LongWork& work) const {
  const bool sees_all = mask() == nullptr && users_.is_all();
  return NotFoundText("user", id, may_offer && sees_all, snapshot_->dataset->profiles.ids, work);
}

absl::StatusOr<std::string> ExistingItems::NotFoundText(std::string_view kind, std::string_view id,
                                                        bool may_offer, const data::IdIndex& ids,
                                                        base::LongWork& work) const {
  std::string offer;
  if (may_offer) {
    const absl::StatusOr<std::string> nearest = ids.Nearest(id, work);
    if (!nearest.ok()) return nearest.status();
    offer = base::DidYouMean(*nearest);
  }
  return fmt::format("no {} {} in {}{}{}", kind, base::Quoted(id), snapshot_->collection,
                     offer.empty() ? "" : ".", offer);
}

}  // namespace simile::engine
