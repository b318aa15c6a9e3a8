#pragma once

#include <memory>
#include <vector>

#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot.h"
#include "simile/clock.h"

namespace simile::engine {

// Measures passes over each new snapshot, so that its first callers meet measured estimates. A pass
// searches for the best 10 of 1, 8, 64 or 256 of the snapshot's own rows. Runs one pass at a time,
// over all snapshots, in the bulk lane; the end of a pass begins the next.
class SearchTimes {
 public:
  // Borrows both. Measurements end when the executor stops.
  SearchTimes(Executor& executor, const Clock& clock);

  // Measures new snapshots, and measures a snapshot again once its index is built. Returns at once.
  // Call it about once a second; it resumes measurements that a full queue refused. Throws
  // std::bad_alloc.
  //   served  the snapshots that are served now; others are forgotten
  void Look(const std::vector<SnapshotPtr>& served);

 private:
  class Measurements;
  const std::shared_ptr<Measurements> measurements_;
};

}  // namespace simile::engine
