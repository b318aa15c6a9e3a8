#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/snapshots/snapshot.h"
#include "simile/clock.h"

namespace simile::engine {

// Frees snapshots on its own thread. Unmapping a large generation takes long enough to show in a
// latency histogram, and any thread may drop the last reference: the publisher's, a completer, an
// I/O thread. Dropping the reference only passes the snapshot to the reclaimer's thread. Owned by
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

enum class ChangeStage : std::uint8_t {
  kWaiting,    // for earlier changes
  kReading,    // the files
  kIndexing,   // in the backend, for filters and for look-ups
  kVerifying,  // the new index against the reference, before it serves
};

// How far a change of a collection has come.
struct ChangeProgress {
  ChangeStage stage = ChangeStage::kWaiting;
  std::string file;  // the file being read
  double share = 0;  // done of the whole change, 0..1
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // of all files; 0 until they are known
};

// kFailed: the first load failed, nothing is served, and another load may begin.
enum class CollectionState : std::uint8_t { kLoading, kServing, kReloading, kFailed };

// A collection as seen from outside: its state and, when there is one, its current snapshot.
struct CollectionStatus {
  std::string name;
  CollectionState state = CollectionState::kLoading;
  std::optional<ChangeProgress> progress;  // of the load under way; nothing without a load
  SnapshotPtr snapshot;                    // null before the first publish
  absl::Status problem = {};               // kFailed: the error of the last load
};

// The served collections: for each a slot with the current snapshot. Owned by wiring. All methods
// may be called from any thread; they hold a mutex briefly, never across work. (A std::mutex,
// because ThreadSanitizer understands neither libstdc++ 12's atomic<shared_ptr> nor the absl::Mutex
// of the distribution, which is built without it.)
//
// A change to a collection is a claim: BeginCreate or BeginReplace marks the slot, so that two
// changes of one collection never overlap; Publish or AbandonChange ends it.
//
// A published snapshot is freed on the store's reclaimer thread, whichever thread drops the last
// reference. The backend that made its segments must outlive the store and every snapshot.
//
// A replaced snapshot is kept for callers that are still paging through it: until its lease expires
// or the next load needs the memory, whichever comes first.
class SnapshotStore {
 public:
  //   clock  borrowed; decides when leases expire
  explicit SnapshotStore(const Clock& clock) : clock_(clock) {}

  // Called when a collection starts or stops serving, outside the mutex, on the thread that made
  // the change. Calls never overlap, and the last call for a name has its current state. Drives the
  // health service. It may read the store but not change it, and must not throw.
  using Listener = std::function<void(const std::string& name, bool serving)>;
  void SetListener(Listener listener);  // REQUIRES: called before any other thread uses the store

  // The current snapshot.
  // Errors: COLLECTION_NOT_FOUND, with the nearest known name; COLLECTION_LOADING while the first
  //         load runs, with its progress; COLLECTION_NOT_LOADED after a load that failed.
  absl::StatusOr<SnapshotPtr> Pin(std::string_view collection) const;
  // The snapshot with this content (Snapshot::id): the current one, or a replaced one that is still
  // kept.
  // Errors: PAGE_SNAPSHOT_GONE when there is none; those of Pin.
  absl::StatusOr<SnapshotPtr> PinContent(std::string_view collection, std::string_view id) const;
  // Keeps the snapshot for `duration` from now, even when it is replaced. Does nothing when the
  // snapshot is neither current nor kept by a lease.
  void Lease(const Snapshot& snapshot, Clock::Duration duration);
  // Drops all snapshots that are kept only by leases.
  void EndLeases();
  std::vector<CollectionStatus> List() const;  // by name
  // Errors: COLLECTION_NOT_FOUND.
  absl::StatusOr<CollectionStatus> Get(std::string_view collection) const;

  // Claim a collection. BeginCreate: a name that does not exist or has failed. BeginReplace: a
  // collection that exists and is idle.
  // Errors: COLLECTION_EXISTS / COLLECTION_NOT_FOUND; CHANGE_IN_PROGRESS when it is claimed.
  absl::Status BeginCreate(const std::string& collection);
  absl::Status BeginReplace(const std::string& collection);
  // REQUIRES: the collection is claimed.
  void SetProgress(const std::string& collection, const ChangeProgress& progress);
  // Ends the claim: the snapshot becomes current under the next version. It may be a copy of a
  // snapshot that was published before, to take a change back; then leases of its content hold for
  // it.
  // REQUIRES: the collection is claimed; the snapshot holds a dataset.
  struct Published {
    std::uint64_t version = 0;
    SnapshotPtr current;
    SnapshotPtr previous;  // null after a first publish
  };
  Published Publish(const std::string& collection, Snapshot snapshot);
  // Ends the claim without a change. A name that never served disappears, unless it had failed.
  // REQUIRES: the collection is claimed.
  void AbandonChange(const std::string& collection);
  // Keeps a name whose first load failed, with the error, so that callers learn that the collection
  // is expected here. Does nothing when another load has begun or published meanwhile.
  void KeepFailed(const std::string& collection, const absl::Status& problem);
  // Removes a collection and returns its last snapshot; null if its load had failed. Calls under
  // way keep their snapshot. A later collection of the same name starts again from version 1.
  // Errors: COLLECTION_NOT_FOUND; CHANGE_IN_PROGRESS when it is claimed.
  absl::StatusOr<SnapshotPtr> Remove(const std::string& collection);

  // Returns when every snapshot released before the call is freed.
  void AwaitReclaimed() const { reclaimer_.AwaitReclaimed(); }

 private:
  struct Slot {
    CollectionState state = CollectionState::kLoading;
    ChangeProgress progress;  // of the claim
    absl::Status problem;     // of the last load, while nothing is served
    std::uint64_t last_version = 0;
    SnapshotPtr current;
    Clock::TimePoint leased_until = Clock::TimePoint::min();  // current
    SnapshotPtr replaced;                                     // while it is leased
    Clock::TimePoint replaced_until = Clock::TimePoint::min();
  };
  using Slots = std::map<std::string, Slot, std::less<>>;
  // The following REQUIRE: mutex_ is held.
  absl::Status UnknownCollection(std::string_view collection) const;
  static absl::Status NotServing(std::string_view collection, const Slot& slot);
  // The time until which content is leased by callers who page through it.
  static Clock::TimePoint FindLease(const Slot& slot, std::string_view id);
  static CollectionStatus ReadStatus(const std::string& collection, const Slot& slot);
  Slot& ClaimedSlot(const std::string& collection);
  void DropExpiredLeases() const;

  // Tells the listener whether the collection serves now.
  void NotifyListener(const std::string& collection);

  Reclaimer reclaimer_;  // first, so that the slots below release snapshots while it still works
  Listener listener_;
  std::mutex listener_mutex_;  // held while the listener runs; locked before mutex_
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards slots_
  // Mutable, because reading drops expired leases.
  mutable Slots slots_;
};

}  // namespace simile::engine
