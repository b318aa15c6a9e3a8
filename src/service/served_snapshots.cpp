#include "service/served_snapshots.h"

#include <utility>

namespace simile::service {

absl::StatusOr<PermittedSnapshot::OwnRows> PermittedSnapshot::Own(base::LongWork& work) const {
  auto rows = query::ExistingItems::Create(*snapshot_, RowsThatPass("").filters, "", work);
  if (!rows.ok()) return rows.status();
  return OwnRows{*snapshot_, *std::move(rows)};
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
