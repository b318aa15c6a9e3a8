#pragma once

#include <string>

#include "engine/snapshot_store.h"
#include "simile/backend.h"

namespace simile::v1 {
class Backend;
class Collection;
class Field;
}  // namespace simile::v1

namespace simile::service {

// The backend that was chosen, and why. Borrowed.
struct ServingBackend {
  const Backend& backend;
  std::string reason;

  // Who answers now: that one, or what stands in for it once its device is lost.
  ServedBy Now() const;
};

// A field of a collection's payload, as a filter sees it.
void FillField(const filter::Field& field, v1::Field& message);

// Who answers for the server as a whole, and what the backend holds on its device.
void FillBackend(const ServingBackend& backend, v1::Backend& message);

// A collection as CollectionService shows it: state and, once there is one, what its snapshot
// holds.
void FillCollection(const engine::CollectionStatus& status, const ServingBackend& backend,
                    v1::Collection& message);

}  // namespace simile::service
