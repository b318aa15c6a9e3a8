#include "service/served_snapshots.h"

namespace simile::service {

absl::StatusOr<engine::SnapshotPtr> PermittedSnapshot::AllRows() const {
  if (collection_.sees_all_rows()) return snapshot_;
  return collection_.SeesSomeRowsError();
}

absl::StatusOr<PermittedSnapshot> ServedSnapshots::Pin(
    const PermittedCollection& collection) const {
  auto pinned = store_.Pin(collection.name());
  if (!pinned.ok()) return collection.WithoutOtherNames(pinned.status());
  return PermittedSnapshot(collection, *std::move(pinned));
}

absl::StatusOr<PermittedSnapshot> ServedSnapshots::PinContent(const PermittedCollection& collection,
                                                              std::string_view id) const {
  auto pinned = store_.PinContent(collection.name(), id);
  if (!pinned.ok()) return collection.WithoutOtherNames(pinned.status());
  return PermittedSnapshot(collection, *std::move(pinned));
}

void ServedSnapshots::Lease(const PermittedSnapshot& snapshot, Clock::Duration duration) const {
  store_.Lease(*snapshot.snapshot_, duration);
}

}  // namespace simile::service
