#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/load/dataset.h"
#include "data/load/user_scope.h"
#include "filter/filters.h"
#include "filter/text_index.h"
#include "simile/backend.h"
#include "simile/row_mask.h"

namespace simile::engine {

// Counts the host memory of a generation in a sum over all generations, while any snapshot of it
// lives: also when it is replaced and only calls under way hold it. Snapshots that share the
// generation's parts share this object.
class HeldMemory {
 public:
  using Sum = std::atomic<std::uint64_t>;

  HeldMemory(std::shared_ptr<Sum> sum, std::uint64_t bytes) : sum_(std::move(sum)), bytes_(bytes) {
    *sum_ += bytes_;
  }
  ~HeldMemory() { *sum_ -= bytes_; }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Sum> sum_;
  const std::uint64_t bytes_;
};

// One generation of a collection: its data and the segments that are searched. Immutable. A query
// holds it from validation to answer, so that a swap never falls between check and use. Dropping
// the last reference only passes it to the store's reclaimer, so no request waits for an unmap. Its
// parts are shared pointers, so that an earlier generation can be published again.
struct Snapshot {
  // Null unless the publisher made the snapshot. Declared first, so that it is destroyed last: the
  // memory counts until everything else is freed.
  std::shared_ptr<const HeldMemory> memory;
  std::string collection;
  std::string id;             // Dataset::content_id
  std::uint64_t version = 0;  // from 1, grows with every publish of the collection
  std::chrono::system_clock::time_point loaded_at;
  // The share of the replaced snapshot's answers that stayed (MeasureOverlap). Nothing for a
  // collection's first snapshot, after a rollback, and when no sampled item is in both.
  std::optional<double> overlap;
  std::shared_ptr<const data::Dataset> dataset;
  // The rows that a search may return: all except Dataset::skipped_rows. Null when no row is
  // skipped.
  std::shared_ptr<const RowMask> searchable;
  // Never null.
  std::shared_ptr<const filter::TextIndex> text_index = std::make_shared<const filter::TextIndex>();
  std::shared_ptr<const filter::Filters> filters;  // never null once published
  // Never null. A cache that fills while the snapshot is served.
  std::shared_ptr<data::UserSubsets> user_subsets = std::make_shared<data::UserSubsets>();
  std::vector<std::shared_ptr<const SegmentIndex>> segments;  // in order of their rows
  ResidentPlan index_plan;                                    // the most that the indexes take

  std::size_t row_count() const { return dataset->vectors.row_count(); }
  std::size_t dim() const { return dataset->vectors.dim(); }
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

// Snapshot::searchable of a dataset.
std::shared_ptr<const RowMask> SearchableRows(const data::Dataset& dataset);

// The resident bytes of a snapshot, by kind of content.
struct ResidentBytes {
  std::uint64_t vectors = 0;
  std::uint64_t payload = 0;  // payload, ids, look-up index, filter index and cached masks
  std::uint64_t users = 0;    // profile vectors, ids, seen sets
  std::uint64_t index = 0;    // the segments' indexes on the host
  std::uint64_t device = 0;   // device memory

  std::uint64_t host() const { return vectors + payload + users + index; }
};
ResidentBytes SumBytes(const Snapshot& snapshot);

// How far the indexes of a snapshot's segments are built (SegmentIndex::Built).
struct IndexState {
  double built = 1;     // 0 .. 1, the least of all segments
  std::string problem;  // the problem of the first segment that has one; else empty
};
IndexState FindIndexState(const Snapshot& snapshot);

// The engine that answers one query without a filter, as receipts name it. Lives as long as the
// backend and served_by.
//   served_by  the backend that answers for the collection
std::string_view FindEngine(const Snapshot& snapshot, const ServedBy& served_by);

// The fallback backend that answers for any segment, and why; null for none.
FallbackBackend FindFallback(const Snapshot& snapshot);

}  // namespace simile::engine
