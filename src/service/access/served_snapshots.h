#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "engine/query/existing_items.h"
#include "engine/snapshots/snapshot_store.h"
#include "service/access/call_access.h"
#include "simile/clock.h"

namespace simile::service {

// A snapshot of a collection that a call may use. Its rows can be reached only together with the
// filters that say which rows exist for the call.
class PermittedSnapshot {
 public:
  const PermittedCollection& collection() const { return collection_; }
  // The same for every caller.
  const std::string& id() const { return snapshot_->id; }
  std::uint64_t version() const { return snapshot_->version; }
  std::chrono::system_clock::time_point loaded_at() const { return snapshot_->loaded_at; }
  std::size_t dim() const { return snapshot_->dim(); }
  Metric metric() const { return snapshot_->dataset->metric; }

  // The rows that exist for the caller, their fields, and its users.
  // Errors: PERMISSION_DENIED when the caller's filter does not fit the collection; those of
  // `work`. Cost: evaluating the filter, unless its rows are cached.
  struct OwnRows {
    const engine::Snapshot& snapshot;  // borrowed
    engine::ExistingItems rows;
  };
  absl::StatusOr<OwnRows> Own(base::LongWork& work) const {
    auto rows = engine::ExistingItems::Create(*snapshot_, RowsThatPass("").filters, "", work);
    if (!rows.ok()) return rows.status();
    return OwnRows{*snapshot_, *std::move(rows)};
  }
  // For answers about the rows that pass these filters and about the caller's users, and about no
  // other row or user. The filters are views of `of_request` and of this object.
  struct Filtered {
    const engine::SnapshotPtr& snapshot;
    engine::RequiredFilters filters;
  };
  Filtered RowsThatPass(std::string_view of_request) const {
    return {snapshot_, {of_request, collection_.required_filter(), collection_.users()}};
  }

 private:
  friend class ServedCollections;
  friend class ServedSnapshots;
  PermittedSnapshot(PermittedCollection collection, engine::SnapshotPtr snapshot)
      : collection_(std::move(collection)), snapshot_(std::move(snapshot)) {}

  PermittedCollection collection_;
  engine::SnapshotPtr snapshot_;
};

// The only way from searches and look-ups to served collections: each function requires what a call
// may use. Owned by the RPC services; borrows the store. Safe to use from any thread.
class ServedSnapshots {
 public:
  explicit ServedSnapshots(engine::SnapshotStore& store) : store_(store) {}

  // Errors: those of SnapshotStore::Pin and PinContent. The messages name no collection that does
  // not exist for the caller.
  absl::StatusOr<PermittedSnapshot> Pin(const PermittedCollection& collection) const {
    return Permitted(collection, store_.Pin(collection.name()));
  }
  absl::StatusOr<PermittedSnapshot> PinContent(const PermittedCollection& collection,
                                               std::string_view id) const {
    return Permitted(collection, store_.PinContent(collection.name(), id));
  }
  // See SnapshotStore::Lease.
  void Lease(const PermittedSnapshot& snapshot, Clock::Duration duration) const {
    store_.Lease(*snapshot.snapshot_, duration);
  }

 private:
  static absl::StatusOr<PermittedSnapshot> Permitted(const PermittedCollection& collection,
                                                     absl::StatusOr<engine::SnapshotPtr> pinned) {
    if (!pinned.ok()) return collection.WithoutOtherNames(pinned.status());
    return PermittedSnapshot(collection, *std::move(pinned));
  }

  engine::SnapshotStore& store_;
};

}  // namespace simile::service
