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

// Searches a snapshot's segments as if they were one: each is searched for its best k, and the hits
// are merged by rank key, so the result is the same however the rows are cut. One segment, the
// usual case, writes straight into the caller's result. Used by one thread at a time.
class SegmentSearch {
 public:
  // segments, batch and result as for SegmentIndex::Search, masks covering every row of all
  // segments; no segment gives no hits. Costs are summed over the segments; the first segment that
  // has a fallback backend gives the result's.
  // Errors: the first segment's that fails; result is then not to be read.
  absl::Status Run(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                   const SearchBatch& batch, SearchResult& result);

  // Begins the same search, to be paused between its pieces, and ends the one before. Borrows
  // all of it.
  void Begin(std::span<const std::shared_ptr<const SegmentIndex>> segments,
             const SearchBatch& batch, SearchResult& result);
  // As SearchPass::Start, where there is one segment. May throw bad_alloc.
  bool Start();
  bool HasEnded() const { return pass_ != nullptr && pass_->HasEnded(); }
  // Searches on until the turn is over. Returns whether the search is done.
  // Errors: as Run; the search has then ended.
  absl::StatusOr<bool> Advance(const Turn& turn);
  // Ends the search that was begun, if it is not done.
  void End() {
    pass_.reset();
    ReleasePartial();
  }
  // What the search that was begun holds on the host.
  std::uint64_t bytes() const { return pass_ == nullptr ? 0 : pass_->bytes(); }

  // As SegmentIndex::Score; the rows may be of any segment.
  absl::StatusOr<FallbackBackend> Score(
      std::span<const std::shared_ptr<const SegmentIndex>> segments, MatrixView queries,
      std::span<const Row> rows, std::span<float> scores);
  // Searches and scores add the device's time to it until the next call; null: not measured.
  // Borrowed.
  void set_device_time(DeviceTime* device_time) { device_time_ = device_time; }
  // The products that all scores so far took: rows * queries * dim.
  std::uint64_t products() const { return products_; }

 private:
  void Merge(std::size_t segment_count, std::size_t row_count, const SearchBatch& batch,
             SearchResult& result);
  // Gives back what segments have lent.
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
  std::size_t segment_ = 0;           // that is searched
  std::unique_ptr<SearchPass> pass_;  // null before it begins there
};

}  // namespace simile::engine
