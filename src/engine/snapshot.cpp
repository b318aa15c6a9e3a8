#include "engine/snapshot.h"

#include <algorithm>

namespace simile::engine {

ResidentBytes BytesOf(const Snapshot& snapshot) {
  const data::Dataset& dataset = *snapshot.dataset;
  return {
      .vectors = dataset.vectors.bytes(),
      .payload = dataset.payload.bytes() + dataset.ids.bytes() + snapshot.text_index.bytes() +
                 snapshot.filters->bytes(),
      .users = dataset.profiles.vectors.bytes() + dataset.profiles.ids.bytes() +
               dataset.profiles.seen.bytes() + dataset.profiles.most_seen.capacity() * sizeof(Row),
      .index = snapshot.index_bytes.host_bytes,
      .device = snapshot.index_bytes.device_bytes,
  };
}

IndexState IndexStateOf(const Snapshot& snapshot) {
  IndexState state;
  for (const auto& segment : snapshot.segments) {
    const absl::StatusOr<double> built = segment->Built();
    state.built = std::min(state.built, built.value_or(0));
    if (!built.ok() && state.problem.empty()) state.problem = std::string(built.status().message());
  }
  return state;
}

}  // namespace simile::engine
