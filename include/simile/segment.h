#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/hits.h"
#include "simile/matrix_view.h"
#include "simile/query.h"
#include "simile/served_by.h"
#include "simile/turn.h"

namespace simile {

// The rows a segment is built from. The backend may keep the view as long as it keeps the owner.
struct SegmentRows {
  // [row_count, dim] fp32, finite; norms in 2^-60..2^60, unit length for cosine, or all zeros
  MatrixView rows;
  std::shared_ptr<const void> owner;  // keeps rows.data() alive
  Metric metric = Metric::kCosine;
  Row first_row = 0;  // the caller's number of rows[0]
};

// The bytes that a segment takes besides the fp32 rows, which the snapshot holds.
struct ResidentPlan {
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
  std::uint64_t host_build_bytes = 0;  // the most that building takes in addition
  bool builds_later = false;           // the index is built after MakeResident has returned
};

// A search that may be paused between its pieces. Used by one thread at a time. Borrows the
// segment, the result and what the batch refers to. If it is destroyed before it is done, the
// result is undefined.
class SearchPass {
 public:
  virtual ~SearchPass() = default;

  // Starts the search on a device that works without a host thread. Returns whether it was started.
  // Advance then waits for the device and completes the search. More searches may be started
  // meanwhile; the device runs them in order. The destructor waits for the device. Advance returns
  // the errors. May throw bad_alloc. Call at most once, before Advance.
  virtual bool Start() { return false; }
  // Whether the device has finished the started search. Cost: one call of the driver.
  virtual bool HasEnded() const { return false; }

  // Searches at least one piece, and goes on until the turn is over or the search is done. The
  // result equals the result of Search, whatever the turns. Returns whether the search is done.
  // Errors: as SegmentIndex::Search; the pass must not be used afterwards.
  virtual absl::StatusOr<bool> Advance(const Turn& turn) = 0;

  // Bytes of the pass's own buffers on the host, without the batch and the result.
  virtual std::uint64_t bytes() const { return 0; }
};

// Ranks rows against queries. Immutable once built. Search may be called from any thread (the
// dispatch thread searches while a fresh segment is verified); a backend whose device runs one
// batch at a time makes the second caller wait. A Search may itself use many threads.
class SegmentIndex {
 public:
  virtual ~SegmentIndex() = default;

  virtual std::size_t row_count() const = 0;
  virtual std::size_t dim() const = 0;

  // The share of the index that is built, 0 .. 1. 1 when nothing is left to build, as for a segment
  // that is scanned without an index. The segment always answers; below 1 it uses a slower
  // strategy.
  // Errors: why the index will never be built, in words for an operator; the slower strategy
  // remains.
  virtual absl::StatusOr<double> Built() const { return 1.0; }

  // The engine that would begin a single query without a mask now, named as in
  // SearchResult::Engine. Empty: the backend's own engine. The name lives as long as the backend.
  // Cost O(1).
  virtual std::string_view engine() const { return {}; }

  // The smallest pass that reaches 95 % of the best rate, in queries, as `simile tune` measured it.
  // A larger pass only adds waiting. 0: no limit is known. Cost O(1).
  virtual std::uint32_t sufficient_batch() const { return 0; }

  // The backend that answers instead of the backend that made the segment; null while the maker
  // answers. If another backend answers a single search only, the result of that search names it.
  virtual FallbackBackend fallback() const { return nullptr; }

  // The bytes that the segment takes now. Nothing: as Backend::Plan said.
  virtual std::optional<ResidentPlan> Resident() const { return std::nullopt; }

  // Finds the best k passing rows for each query, best first by RankKey.
  //   batch.queries  [batch, dim]  row-major fp32, unit length for cosine
  //   batch.specs    [batch]       k, mask, exclusions and threshold of each query
  //   result         hits of each query: the caller's row and the canonical score; shorter than k
  //                  when fewer rows pass
  // REQUIRES: 1 <= k <= kHitsMax for each query, dim equal to the segment's, masks that cover every
  //           row of the segment.
  // Errors: kResourceExhausted when the workspace cannot hold the batch; kUnavailable after a
  //         device fault.
  virtual absl::Status Search(const SearchBatch& batch, SearchResult& result) const = 0;

  // Begins a search that can be paused between its pieces; the result equals the result of Search.
  // The default has one piece. Several searches may be under way at once. A paused search holds its
  // buffers and no lock.
  // Errors: kResourceExhausted when there is no memory to begin.
  virtual absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                            SearchResult& result) const;

  // Whether a search that begins now has more than one piece.
  virtual bool CanPause() const { return false; }

  // As Search, for checks while queries are served. On the host it runs on the calling thread alone
  // and shares no lock with Search, so no query waits for it.
  virtual absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const {
    return Search(batch, result);
  }

  // Forms the canonical scores of some rows with some vectors: for queries with several vectors,
  // and to compare rows with each other.
  //   queries  [query_count, dim]  row-major fp32, as for Search
  //   rows     [n]                 the caller's numbers
  //   scores   [query_count, n]    written; scores[q * n + i] is the score of rows[i] with q
  //   device_time  as SearchBatch::device_time
  // REQUIRES: rows are ascending and distinct, all of this segment.
  // Returns the backend that formed the scores if the backend that made the segment did not; else
  // null.
  // Errors: as Search. Cost: n * query_count canonical scores; every row is read once.
  virtual absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                                std::span<float> scores,
                                                DeviceTime* device_time) const = 0;
};

// A search that cannot be paused: one piece.
class WholeSearch final : public SearchPass {
 public:
  WholeSearch(const SegmentIndex& segment, const SearchBatch& batch, SearchResult& result)
      : segment_(segment), batch_(batch), result_(result) {}

  absl::StatusOr<bool> Advance(const Turn& /*turn*/) override {
    if (absl::Status status = segment_.Search(batch_, result_); !status.ok()) return status;
    return true;
  }

 private:
  const SegmentIndex& segment_;
  const SearchBatch batch_;
  SearchResult& result_;
};

inline absl::StatusOr<std::unique_ptr<SearchPass>> SegmentIndex::Begin(const SearchBatch& batch,
                                                                       SearchResult& result) const {
  return std::make_unique<WholeSearch>(*this, batch, result);
}

}  // namespace simile
