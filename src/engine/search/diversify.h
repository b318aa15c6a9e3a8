#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "engine/search/execution.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Chooses k of a query's candidates by Diversity's rule, some at a time. Borrows the snapshot.
class Diversifier {
 public:
  //   candidates  best first
  // Throws std::bad_alloc.
  Diversifier(std::span<const Hit> candidates, std::size_t k, float lambda,
              const Snapshot& snapshot);

  bool done() const { return chosen_.size() == wanted_; }
  // Chooses the next ones: some milliseconds of work.
  //   execution  what comparing costs is added to it: each comparison counts as a row rescored
  // Errors: the backend's. REQUIRES: not done. Cost: a canonical score for each candidate and each
  // row chosen.
  absl::Status ChooseSome(SegmentSearch& search, Execution& execution);
  // Those chosen, in the order chosen; all candidates when there are no more than k.
  std::vector<Hit> TakeHits() { return std::move(chosen_); }

 private:
  struct Candidate {
    Hit hit;
    float nearest_chosen;  // its greatest similarity to a row that is chosen
    bool chosen = false;
  };
  double Relevance(const Candidate& candidate) const;
  void Choose();
  absl::Status CompareWithNewest(SegmentSearch& search, Execution& execution);

  const Snapshot& snapshot_;
  const double lambda_;
  std::size_t wanted_ = 0;
  std::vector<Candidate> candidates_;  // best first
  // Score takes rows in ascending order.
  std::vector<std::size_t> by_row_;  // [candidates] indexes
  std::vector<Row> rows_;            // [candidates] ascending
  std::vector<float> similarities_;  // [candidates] to the newest, in the order of rows_
  std::vector<Hit> chosen_;
};

}  // namespace simile::engine
