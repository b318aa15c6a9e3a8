#pragma once

#include <memory>

#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Frees snapshots on a thread of its own. Unmapping a large generation takes long enough to be seen
// in a latency histogram, and any thread may drop the last reference: the publisher's, a
// completer, the I/O thread. Dropping it only passes the snapshot to this thread. Owned by
// the snapshot store; safe to call from any thread.
class Reclaimer {
 public:
  Reclaimer();
  // Frees the released snapshots, then joins. Snapshots still referenced are freed later, by the
  // thread that drops the last reference.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Makes a snapshot shared. Allocates all that its release will need.
  SnapshotPtr Adopt(Snapshot snapshot);

  // Returns when every snapshot released before the call is freed: a plan for the next generation
  // must see that memory as available.
  void AwaitReclaimed() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace simile::engine
