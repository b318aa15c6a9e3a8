#include "engine/snapshot.h"

namespace simile::engine {

ResidentBytes BytesOf(const Snapshot& snapshot) {
  const data::Dataset& dataset = *snapshot.dataset;
  return {
      .vectors = dataset.vectors.bytes(),
      .payload = dataset.payload.bytes() + dataset.ids.bytes() + snapshot.text_index.bytes(),
      .users = dataset.profiles.vectors.bytes() + dataset.profiles.ids.bytes() +
               dataset.profiles.seen.bytes(),
      .index = snapshot.index_bytes.host_bytes,
      .device = snapshot.index_bytes.device_bytes,
  };
}

}  // namespace simile::engine
