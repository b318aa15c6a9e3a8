#pragma once

#include <string>

#include "engine/snapshot_store.h"
#include "simile/backend.h"

namespace simile::v1 {
class Collection;
class Field;
}  // namespace simile::v1

namespace simile::service {

// What answers for every collection, and why.
struct ServingBackend {
  BackendInfo info;
  std::string reason;
};

// A field of a collection's payload, as a filter sees it.
void FillField(const filter::Field& field, v1::Field& message);

// A collection as CollectionService shows it: state and, once there is one, what its snapshot
// holds.
void FillCollection(const engine::CollectionStatus& status, const ServingBackend& backend,
                    v1::Collection& message);

}  // namespace simile::service
