#pragma once

#include <memory>

#include "engine/snapshot.h"

namespace simile::engine {

// Frees snapshots on a thread of its own. Unmapping a large generation takes long enough to be seen
// in a latency histogram, and the last reference may be dropped by anyone: the publisher, a reply
// being completed, a look-up on a gRPC thread. So whoever lets go last only hands the snapshot
// over. Owned by the snapshot store; safe to call from any thread.
class Reclaimer {
 public:
  Reclaimer();
  // Frees what was let go, then joins. Snapshots still held are freed later by whoever lets go.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Makes a snapshot shared. Everything its release will need is allocated here.
  SnapshotPtr Adopt(Snapshot snapshot);

  // Returns when all that was let go before the call is freed: a plan for the next generation must
  // see that memory as available.
  void AwaitReclaimed() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace simile::engine
