#pragma once

#include <memory>
#include <vector>

#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot.h"
#include "simile/clock.h"

namespace simile::engine {

// Measures how long searches of each snapshot take by how many queries share a pass, so that its
// first callers meet measured estimates: passes of 1, 8, 64 and 256 of the snapshot's own rows, for
// the best 10 of each. One pass at a time, over all snapshots, in the bulk lane; the end of one
// begins the next.
class SearchTimes {
 public:
  // Borrows both. Measurements end when the executor stops.
  SearchTimes(Executor& executor, const Clock& clock);

  // Measures the snapshots that are new, and once more those whose index has been built since.
  // Returns at once. Call it about once a second: it also goes on after the queue was full. Throws
  // std::bad_alloc.
  //   served  those that are served now; others are forgotten
  void Look(const std::vector<SnapshotPtr>& served);

 private:
  class Measurements;
  const std::shared_ptr<Measurements> measurements_;
};

}  // namespace simile::engine
