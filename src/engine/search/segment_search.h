#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/query.h"
#include "simile/segment.h"

namespace simile::engine {

// Searches a snapshot's segments as if they were one. Each segment is searched for its best k, and
// the hits are merged by rank key, so the result does not depend on how rows are divided. A single
// segment, the usual case, writes straight into the caller's result. Used by one thread at a time.
class SegmentSearch {
 public:
  // segments, batch and result as for SegmentIndex::Search, masks covering every row of all
  // segments; no segment gives no hits. Costs are summed over the segments. The result's fallback
  // backend is that of the first segment that has one.
  // Errors: of the first segment that fails; then the result must not be read.
  absl::Status Run(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                   const SearchBatch& batch, SearchResult& result);

  // Ends the previous search and begins the same as Run, which may be paused between its pieces.
  // Borrows all arguments.
  void Begin(std::span<const std::shared_ptr<const SegmentIndex>> segments,
             const SearchBatch& batch, SearchResult& result);
  // As SearchPass::Start; starts only when there is one segment. May throw bad_alloc.
  bool Start();
  bool HasEnded() const { return pass_ != nullptr && pass_->HasEnded(); }
  // Continues until the turn is over. Returns whether the search is done.
  // Errors: as Run; the search has then ended.
  absl::StatusOr<bool> Advance(const Turn& turn);
  // Ends the search that was begun, if it is not done.
  void End() {
    pass_.reset();
    ReleasePartial();
  }
  // The host bytes of the search that was begun.
  std::uint64_t bytes() const { return pass_ == nullptr ? 0 : pass_->bytes(); }

  // As SegmentIndex::Score; the rows may be of any segment.
  absl::StatusOr<FallbackBackend> Score(
      std::span<const std::shared_ptr<const SegmentIndex>> segments, MatrixView queries,
      std::span<const Row> rows, std::span<float> scores);
  // From now on searches and scores add the device's time here; null: not measured. Borrowed.
  void set_device_time(DeviceTime* device_time) { device_time_ = device_time; }
  // The products of all scores so far: rows * queries * dim.
  std::uint64_t products() const { return products_; }

 private:
  void Merge(std::size_t segment_count, std::size_t row_count, const SearchBatch& batch,
             SearchResult& result);
  // Gives back the hits that segments have lent.
  void ReleasePartial();

  std::vector<SearchResult> partial_;  // one a segment
  std::vector<std::size_t> next_;      // one a segment: its first hit not yet merged
  std::vector<float> scores_;          // of one segment's rows
  std::uint64_t products_ = 0;
  DeviceTime* device_time_ = nullptr;
  // Of the search that was begun:
  std::span<const std::shared_ptr<const SegmentIndex>> segments_;
  SearchBatch batch_;
  SearchResult* result_ = nullptr;
  std::size_t segment_ = 0;           // the segment under way
  std::unique_ptr<SearchPass> pass_;  // null before the segment's search begins
};

}  // namespace simile::engine
