#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/reclaimer.h"
#include "engine/snapshot.h"
#include "simile/clock.h"

namespace simile::engine {

enum class CollectionState : std::uint8_t { kLoading, kServing, kReloading };

// A collection as seen from outside: its state and, when there is one, its current snapshot.
struct CollectionStatus {
  std::string name;
  CollectionState state = CollectionState::kLoading;
  double progress = 0;   // of the change under way, 0..1
  SnapshotPtr snapshot;  // null before the first publish
};

// The collections being served: for each a slot with the current snapshot. Owned by wiring; all
// methods may be called from any thread and hold a short mutex, never across work. (A std::mutex:
// ThreadSanitizer cannot see through libstdc++ 12's atomic<shared_ptr>, nor through an absl::Mutex
// whose library was built without it, as the distribution's is.)
//
// A change to a collection is a claim: BeginCreate or BeginReplace marks the slot, so that two
// changes of one collection never overlap; Publish or AbandonChange ends it.
//
// A published snapshot is freed on the store's reclaimer thread, whoever lets go of it last. The
// backend that made its segments must outlive the store and every snapshot taken from it.
//
// A snapshot that has been replaced goes on being kept while a caller is in the midst of its pages:
// until its lease has run out, or until memory is wanted for the next load, whichever comes first.
class SnapshotStore {
 public:
  //   clock  borrowed; tells when leases run out
  explicit SnapshotStore(const Clock& clock) : clock_(clock) {}

  // Called when a collection begins or ceases to answer, outside the mutex, from the thread that
  // made the change. Calls never overlap, and the last one for a name tells its present state.
  // Health follows it. It may read the store but not change it.
  using Listener = std::function<void(const std::string& name, bool serving)>;
  void SetListener(Listener listener);  // REQUIRES: called before any other thread uses the store

  // The current snapshot.
  // Errors: kNotFound, with the nearest known name; kFailedPrecondition while the first load runs,
  //         with its progress.
  absl::StatusOr<SnapshotPtr> Pin(std::string_view collection) const;
  // The snapshot that was published under this version at this time, if it is still there.
  // Errors: kAborted when it is not; kNotFound as Pin.
  absl::StatusOr<SnapshotPtr> PinVersion(std::string_view collection, std::uint64_t version,
                                         std::chrono::system_clock::time_point loaded_at) const;
  // Keeps the snapshot that long after it has been replaced. Does nothing when it is neither the
  // current one nor kept already.
  void Lease(const Snapshot& snapshot, Clock::Duration duration);
  // Lets go of all snapshots that only leases keep.
  void EndLeases();
  std::vector<CollectionStatus> List() const;  // by name
  // Errors: kNotFound.
  absl::StatusOr<CollectionStatus> Get(std::string_view collection) const;

  // Claims a new name (must not exist) or an existing one (must exist and be idle).
  // Errors: kAlreadyExists / kNotFound; kAborted when a change of it is under way.
  absl::Status BeginCreate(const std::string& collection);
  absl::Status BeginReplace(const std::string& collection);
  void SetProgress(const std::string& collection, double fraction);
  // Ends the claim: the snapshot becomes current under the next version, which is returned. The
  // previous one is handed back for whoever wants to look at it or keep it a while.
  // REQUIRES: the collection is claimed; the snapshot holds a dataset.
  struct Published {
    std::uint64_t version = 0;
    SnapshotPtr current;
    SnapshotPtr previous;  // null after a first publish
  };
  Published Publish(const std::string& collection, Snapshot snapshot);
  // Ends the claim without a change; a name that never served disappears.
  // REQUIRES: the collection is claimed.
  void AbandonChange(const std::string& collection);
  // Takes a collection out. Calls under way keep their snapshot. The last version is handed back.
  // A collection created under the same name later starts again from version 1.
  // Errors: kNotFound, kAborted when a change is under way.
  absl::StatusOr<SnapshotPtr> Remove(const std::string& collection);

  // Returns when every snapshot let go before the call is freed.
  void AwaitReclaimed() const { reclaimer_.AwaitReclaimed(); }

 private:
  struct Slot {
    CollectionState state = CollectionState::kLoading;
    double progress = 0;
    std::uint64_t last_version = 0;
    SnapshotPtr current;
    Clock::TimePoint leased_until = Clock::TimePoint::min();  // current
    SnapshotPtr replaced;                                     // while its lease runs
    Clock::TimePoint replaced_until = Clock::TimePoint::min();
  };
  using Slots = std::map<std::string, Slot, std::less<>>;
  // REQUIRES of these: mutex_ is held.
  absl::Status UnknownCollection(std::string_view collection) const;
  Slot& ClaimedSlot(const std::string& collection);
  void EndLeasesThatRanOut() const;

  // Tells the listener whether the collection answers now.
  void Tell(const std::string& collection);

  Reclaimer reclaimer_;  // first, so that the slots below let go while it still works
  Listener listener_;
  std::mutex telling_mutex_;  // held while the listener runs; taken before mutex_
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards slots_
  // Mutable, because a lease that has run out ends when somebody looks.
  mutable Slots slots_;
};

}  // namespace simile::engine
