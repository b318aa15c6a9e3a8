#include "engine/query/other_items.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "data/load/collection_files.h"

namespace simile::engine {
namespace {

using base::ErrorReason;

constexpr std::string_view kField = "item.collection";
constexpr std::string_view kRequiredFilter = "options.required_filter";

}  // namespace

absl::StatusOr<const OtherItems::Items*> OtherItems::Of(const Place& place,
                                                        std::string_view collection) {
  auto known = opened_.find(collection);
  if (known == opened_.end()) {
    const auto& [name, other] = *collections_.find(collection);
    absl::StatusOr<Items> items = Open(name, other);
    if (IsOfWork(items.status())) return items.status();
    known = opened_.emplace(name, std::move(items)).first;
  }
  if (known->second.ok()) return &*known->second;
  const absl::Status& refusal = known->second.status();
  return base::FieldOf(refusal) == kRequiredFilter ? refusal : AtPlace(place, kField, refusal);
}

absl::StatusOr<OtherItems::Items> OtherItems::Open(const std::string& collection,
                                                   const absl::StatusOr<OtherCollection>& other) {
  absl::Status status = other.ok() ? CheckComparable(*other->snapshot) : other.status();
  if (!status.ok()) return base::WithField(std::move(status), kField);
  auto existing = ExistingItems::Create(*other->snapshot, other->filters, kRequiredFilter, work_);
  if (existing.ok()) return Items{*other->snapshot, *std::move(existing)};
  status = existing.status();
  switch (base::ReasonOf(status)) {
    case ErrorReason::kPermissionDenied:
      return base::WithField(std::move(status), kField);
    case ErrorReason::kInvalidFilter:
      return base::WithMessage(
          status, fmt::format("{}; options.required_filter also applies to {}, because "
                              "queries name its items",
                              std::string(status.message()), collection));
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
                                   other.collection, data::NameOf(other.dataset->metric),
                                   searched_.collection, data::NameOf(searched_.dataset->metric)));
  }
  return absl::OkStatus();
}

}  // namespace simile::engine
