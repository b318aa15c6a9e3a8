#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/error_detail.h"
#include "base/long_work.h"
#include "engine/query/existing_items.h"
#include "engine/query/query_request.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// A collection other than the searched one, whose items the queries of a call name.
struct OtherCollection {
  const engine::Snapshot* snapshot;
  RequiredFilters filters;  // of the caller and of the request
};

// By name. An error says why the call may not use the collection, or why it has no content.
using OtherCollections = std::map<std::string, absl::StatusOr<OtherCollection>, std::less<>>;

// The items of other collections that exist for a call. The required filters of a collection are
// evaluated when its first item is looked up. Borrows what it is made from.
class OtherItems {
 public:
  OtherItems(const engine::Snapshot& searched, const OtherCollections& collections,
             base::LongWork& work)
      : searched_(searched), collections_(collections), work_(work) {}

  struct Items {
    const engine::Snapshot& snapshot;
    ExistingItems existing;
  };
  // REQUIRES: `collections` has this collection.
  // Errors: of the place's "item.collection": DIMENSION_MISMATCH; INVALID_FIELD for another metric;
  //         the error of the collection; PERMISSION_DENIED when the caller's filter does not fit
  //         it. Of the call: INVALID_FILTER of "options.required_filter"; work's, without a field.
  absl::StatusOr<const Items*> Of(const Place& place, std::string_view collection);
  // Whether `work` made this error of Of.
  static bool IsOfWork(const absl::Status& error) {
    return !error.ok() && base::FieldOf(error).empty();
  }

 private:
  // Errors: as Of, but about "item.collection" without a place.
  absl::StatusOr<Items> Open(const std::string& collection,
                             const absl::StatusOr<OtherCollection>& other);
  // Errors: DIMENSION_MISMATCH; INVALID_FIELD.
  absl::Status CheckComparable(const engine::Snapshot& other) const;

  const engine::Snapshot& searched_;
  const OtherCollections& collections_;
  base::LongWork& work_;
  std::map<std::string_view, absl::StatusOr<Items>> opened_;
};

}  // namespace simile::engine
