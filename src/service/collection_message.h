#pragma once

#include <string>

#include "engine/snapshots/snapshot_store.h"
#include "simile/backend.h"

namespace simile::v1 {
class Backend;
class Collection;
class Field;
}  // namespace simile::v1

namespace simile::service {

// The chosen backend (borrowed), and why it was chosen.
struct ServingBackend {
  const Backend& backend;
  std::string reason;

  // What answers now: the backend, or its fallback after its device was lost.
  ServedBy Now() const;
};

// A payload field with its type in filters.
void FillField(const filter::Field& field, v1::Field& message);

// What answers now, and the memory on the backend's device.
void FillBackend(const ServingBackend& backend, v1::Backend& message);

// A collection's state and, when it has a snapshot, what that holds.
void FillCollection(const engine::CollectionStatus& status, const ServingBackend& backend,
                    v1::Collection& message);

}  // namespace simile::service
