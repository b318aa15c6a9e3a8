#include "engine/snapshots/snapshot.h"

#include <algorithm>
#include <optional>

namespace simile::engine {

namespace {

// The bytes that the indexes take now: less than planned when a fallback backend made a segment.
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

std::shared_ptr<const RowMask> SearchableRows(const data::Dataset& dataset) {
  if (dataset.skipped_rows.empty()) return nullptr;
  auto rows = std::make_shared<RowMask>(dataset.vectors.row_count());
  rows->Invert();
  for (const Row row : dataset.skipped_rows) rows->Forbid(row);
  return rows;
}

ResidentBytes SumBytes(const Snapshot& snapshot) {
  const data::Dataset& dataset = *snapshot.dataset;
  const ResidentPlan index = IndexBytes(snapshot);
  const std::uint64_t skipped_bytes =
      dataset.skipped_rows.capacity() * sizeof(Row) +
      (snapshot.searchable != nullptr ? snapshot.searchable->bytes() : 0);
  return {
      .vectors = dataset.vectors.bytes(),
      .payload = dataset.payload.bytes() + dataset.ids.bytes() + snapshot.text_index->bytes() +
                 snapshot.filters->bytes() + skipped_bytes,
      .users = dataset.profiles.vectors.bytes() + dataset.profiles.ids.bytes() +
               dataset.profiles.seen.bytes() + dataset.profiles.visitor_ids.bytes() +
               dataset.profiles.visitor_seen.bytes() +
               dataset.profiles.most_seen.capacity() * sizeof(Row) + snapshot.user_subsets->bytes(),
      .index = index.host_bytes,
      .device = index.device_bytes,
  };
}

IndexState FindIndexState(const Snapshot& snapshot) {
  IndexState state;
  for (const auto& segment : snapshot.segments) {
    const absl::StatusOr<double> built = segment->Built();
    state.built = std::min(state.built, built.value_or(0));
    if (!built.ok() && state.problem.empty()) state.problem = std::string(built.status().message());
  }
  return state;
}

std::string_view FindEngine(const Snapshot& snapshot, const ServedBy& served_by) {
  for (const auto& segment : snapshot.segments) {
    if (const std::string_view engine = segment->engine(); !engine.empty()) return engine;
  }
  return served_by.info.engine;
}

FallbackBackend FindFallback(const Snapshot& snapshot) {
  for (const auto& segment : snapshot.segments) {
    if (FallbackBackend fallback = segment->fallback(); fallback != nullptr) return fallback;
  }
  return nullptr;
}

}  // namespace simile::engine
