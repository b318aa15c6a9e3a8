#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "simile/segment.h"
#include "simile/served_by.h"

namespace simile::engine {

// Searches a snapshot's segments as if they were one: each is asked for its best k, and the answers
// are merged by rank key, so the result is the same however the rows are cut. One segment, the
// usual case, writes straight into the caller's result. Owned by the dispatch thread; warm searches
// allocate nothing.
class SegmentSearch {
 public:
  // segments, batch and result as for SegmentIndex::Search, masks covering every row of all
  // segments; no segment gives no hits. Costs are summed over the segments.
  // Errors: the first segment's that fails; result is then not to be read.
  absl::Status Run(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                   const SearchBatch& batch, SearchResult& result);

  // queries, rows and scores as for SegmentIndex::Score, rows of all segments together.
  absl::Status Score(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                     MatrixView queries, std::span<const Row> rows, std::span<float> scores);

  // Who answered any of this in the stead of the backend since it was last asked; the first, where
  // there were several. Null when nobody did.
  StandIn TakeStandIn() { return std::exchange(stand_in_, nullptr); }

 private:
  void Note(const StandIn& stand_in) {
    if (stand_in_ == nullptr) stand_in_ = stand_in;
  }
  absl::Status Score(const SegmentIndex& segment, MatrixView queries, std::span<const Row> rows,
                     std::span<float> scores);
  void Merge(std::size_t segment_count, const SearchBatch& batch, SearchResult& result);

  std::vector<SearchResult> partial_;  // one a segment
  std::vector<std::size_t> next_;      // one a segment: its first hit not yet merged
  std::vector<float> scores_;          // of one segment's rows
  StandIn stand_in_;
};

}  // namespace simile::engine
