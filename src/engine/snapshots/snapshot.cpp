#include "engine/snapshots/snapshot.h"

#include <algorithm>
#include <optional>

namespace simile::engine {

namespace {

// What the indexes take now: less than planned when a fallback backend made a segment.
ResidentPlan IndexBytes(const Snapshot& snapshot) {
  ResidentPlan sum;
  for (const auto& segment : snapshot.segments) {
    const std::optional<ResidentPlan> resident = segment->Resident();
    if (!resident) return snapshot.index_plan;
    sum.host_bytes += resident->host_bytes;
    sum.device_bytes += resident->device_bytes;
  }
  return sum;
}

}  // namespace

ResidentBytes BytesOf(const Snapshot& snapshot) {
  const data::Dataset& dataset = *snapshot.dataset;
  const ResidentPlan index = IndexBytes(snapshot);
  return {
      .vectors = dataset.vectors.bytes(),
      .payload = dataset.payload.bytes() + dataset.ids.bytes() + snapshot.text_index->bytes() +
                 snapshot.filters->bytes(),
      .users = dataset.profiles.vectors.bytes() + dataset.profiles.ids.bytes() +
               dataset.profiles.seen.bytes() + dataset.profiles.most_seen.capacity() * sizeof(Row),
      .index = index.host_bytes,
      .device = index.device_bytes,
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

FallbackBackend FallbackOf(const Snapshot& snapshot) {
  for (const auto& segment : snapshot.segments) {
    if (FallbackBackend fallback = segment->fallback(); fallback != nullptr) return fallback;
  }
  return nullptr;
}

}  // namespace simile::engine
