#include "query/other_items.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::query {
namespace {

using base::ErrorReason;

constexpr std::string_view kField = "item.collection";
constexpr std::string_view kRequiredFilter = "options.required_filter";

std::string_view MetricText(const engine::Snapshot& snapshot) {
  return snapshot.dataset->metric == Metric::kCosine ? "cosine" : "dot";
}

}  // namespace

absl::StatusOr<const OtherItems::Items*> OtherItems::Of(const Place& place,
                                                        std::string_view collection) {
  const auto known = opened_.find(collection);
  if (known != opened_.end()) return &known->second;
  const auto& [name, other] = *collections_.find(collection);
  absl::Status status = other.ok() ? CheckComparable(*other->snapshot) : other.status();
  if (!status.ok()) return AtPlace(place, kField, status);
  auto existing = ExistingItems::Create(*other->snapshot, other->filters, kRequiredFilter, work_);
  if (existing.ok()) {
    return &opened_.try_emplace(name, Items{*other->snapshot, *std::move(existing)}).first->second;
  }
  status = existing.status();
  switch (base::ReasonOf(status)) {
    case ErrorReason::kPermissionDenied:
      return AtPlace(place, kField, status);
    case ErrorReason::kInvalidFilter:
      return base::WithMessage(
          status, fmt::format("{}; the filter applies to {} too, whose items queries name",
                              std::string(status.message()), name));
    default:
      return status;
  }
}

absl::Status OtherItems::CheckComparable(const engine::Snapshot& other) const {
  if (other.dim() != searched_.dim()) {
    return base::Error(
        ErrorReason::kDimensionMismatch,
        fmt::format("{} has {}, {} has {}; a vector from another model cannot be compared",
                    other.collection, base::Counted(other.dim(), "dimension"), searched_.collection,
                    base::Grouped(searched_.dim())));
  }
  if (other.dataset->metric != searched_.dataset->metric) {
    return base::Error(ErrorReason::kInvalidField,
                       fmt::format("{} has the metric {}, {} has {}; to search with its vector "
                                   "anyway, fetch it with_vectors and send it as a vector",
                                   other.collection, MetricText(other), searched_.collection,
                                   MetricText(searched_)));
  }
  return absl::OkStatus();
}

}  // namespace simile::query
