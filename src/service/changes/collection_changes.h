#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/load/fingerprint.h"
#include "engine/snapshots/change_queue.h"
#include "engine/snapshots/publisher.h"
#include "engine/snapshots/snapshot_store.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/changes/changes_under_way.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::service {

// Loads, reloads, rolls back and unloads collections, and remembers where each came from. A change
// does not depend on the calls that wait for it: it is made once, however many calls ask for it,
// and also when all of them have left. Owned by wiring; its parts outlive it. Safe to use from any
// thread.
class CollectionChanges {
 public:
  struct Options {
    bool allowed_over_wire = false;
    std::filesystem::path data_root;  // callers load only from below it; empty: from nowhere
    double min_overlap = 0;           // of a reload that does not set its own
    bool required = true;             // false: a collection that fails at start is kept as failed
  };
  struct Parts {
    engine::Publisher& publisher;
    engine::SnapshotStore& store;
    engine::ChangeQueue& queue;
    observe::Metrics& metrics;
    const observe::Logger& log;
    const Clock& clock;
    const Limits& limits;
  };
  CollectionChanges(Options options, const Parts& parts);

  // Loads a folder that the operator configured, inside or outside the data root. Blocks. For
  // start-up, and to load again what failed then. Does not wait for the change queue.
  // Errors: as Start of a load; they are not logged. Where collections are not required, the name
  // is kept as failed, and a reload reads the folder.
  absl::StatusOr<engine::SnapshotPtr> LoadAtStart(const std::string& name,
                                                  const std::filesystem::path& folder);

  // Makes the change that a remote caller asks for, or joins the same change under way. `done` gets
  // what is served afterwards: before the return when nothing needs to be read, else on the change
  // queue's thread.
  // Returned errors: CHANGES_NOT_ALLOWED; INVALID_FIELD for the name; COLLECTION_NOT_FOUND;
  // NOTHING_TO_ROLL_BACK; CHANGE_IN_PROGRESS; CHANGE_QUEUE_FULL; STOPPING. After a returned error
  // or an exception `done` is not called.
  // Errors of `done`: CHANGE_QUEUE_FULL; STOPPING; CANCELLED; and of
  //   kLoad      those of ResolveInDataRoot and Publisher::Create; COLLECTION_EXISTS when other
  //              files are served under the name
  //   kReload    those of ResolveInDataRoot and Publisher::Replace; SNAPSHOT_MISMATCH
  //   kRollback  those of Publisher::Replace; SNAPSHOT_MISMATCH; NOTHING_TO_ROLL_BACK when the
  //              folder no longer holds the content
  // REQUIRES: request.kind is one of these.
  absl::Status Start(ChangeRequest request, ChangeCaller caller);

  // Reloads a collection from the folder that it is served from, for the operator of this machine:
  // also when callers may not change collections. Reads the files after the call: waits for a
  // change under way and does not join it. Blocks; ends with STOPPING once Stop is called. Returns
  // what is served afterwards, the same snapshot as before if no file has changed.
  //   before  gets what is served when the reload begins; may be null
  // Errors: as Start and `done` of a reload; they are not logged.
  absl::StatusOr<engine::SnapshotPtr> ReloadServed(const std::string& name,
                                                   engine::SnapshotPtr* before = nullptr);

  // Stops serving a collection. Does not block: reads nothing, and another thread frees the memory.
  // Errors: CHANGES_NOT_ALLOWED; INVALID_FIELD; COLLECTION_NOT_FOUND; SNAPSHOT_MISMATCH;
  //         CHANGE_IN_PROGRESS; STOPPING.
  absl::Status Unload(const std::string& name, const std::string& expected_snapshot_id);

  // Where a served snapshot came from, and what a rollback returns to. Folders are relative to the
  // data root; empty for a folder outside the data root.
  struct Origin {
    std::string folder;                // the next reload reads it
    std::string loaded_from;           // the loaded folder, with every link followed
    std::string rollback_snapshot_id;  // empty when there is nothing to return to
  };
  Origin FindOrigin(const engine::Snapshot& snapshot) const;
  // Whether the last load, reload or rollback of a served collection failed.
  bool LastLoadFailed(const std::string& name) const;

  bool allowed_over_wire() const { return options_.allowed_over_wire; }
  // Whether a change is being made or waits; for tests.
  bool AnyUnderWay() const { return !under_way_.empty(); }
  // Answers every waiting call with STOPPING, and refuses changes from now on. A load that runs
  // cannot be interrupted.
  void Stop() { under_way_.Stop(); }

 private:
  using Result = absl::StatusOr<engine::SnapshotPtr>;

  // A folder with a generation's content.
  struct Source {
    FolderName asked;
    FolderName found;  // with every link followed
    data::FolderFingerprint fingerprint;
  };
  // A snapshot of a collection, and where its content is.
  struct Generation {
    Source loaded_from;  // a rollback returns to this folder
    // The folder that the next reload reads, if it is not loaded_from: a folder that was found to
    // have the same content.
    std::optional<Source> equal;
    std::string snapshot_id;
    std::vector<data::KeptType> field_types;

    const Source& next() const { return equal ? *equal : loaded_from; }
    // Whether one of its folders had these files when it was read.
    bool Has(const data::FolderFingerprint& files) const {
      return files == loaded_from.fingerprint || (equal && files == equal->fingerprint);
    }
    // From now on reloads read this folder, which has the same content. Takes no memory.
    void ReadNext(Source source);
  };
  struct History {
    Generation served;
    std::optional<Generation> earlier;  // what a rollback returns to
    bool rolled_back = false;           // nothing else was published since the rollback
    bool last_load_failed = false;
  };
  using Histories = std::map<std::string, History>;

  absl::Status CheckAllowed(const std::string& name) const;
  // As Start, for a change that is known to be allowed.
  //   joined  set to whether the same change was under way already
  absl::Status Begin(const ChangeRequest& request, ChangeCaller caller, bool& joined);
  // The answer to a request that needs no file and no turn in the queue; nothing for other
  // requests.
  std::optional<Result> AnswerAtOnce(const ChangeRequest& request) const;
  absl::Status Enqueue(const ChangeRequest& request);
  // Makes the change on this thread, or waits for the same change under way.
  Result MakeHere(const ChangeRequest& request);
  // Makes a change that was begun, and ends it. Does not throw.
  void Make(const ChangeRequest& request);
  Result Apply(const ChangeRequest& request);
  Result Load(const ChangeRequest& request);
  Result LoadFrom(const absl::StatusOr<FoundFolder>& folder, const ChangeRequest& request);
  Result Reload(const ChangeRequest& request);
  Result RollBack(const ChangeRequest& request);
  Result RollBackFromFolder(const ChangeRequest& request, const History& history);
  // Loads the earlier generation from one of its folders.
  // Errors: NOTHING_TO_ROLL_BACK when the folder has other content by now.
  absl::StatusOr<engine::Publisher::Loaded> LoadEarlier(const ChangeRequest& request,
                                                        const History& history, Source& source);
  Result Remove(const ChangeRequest& request);

  // The folder that a reload reads: the request's folder, or else the known one.
  absl::StatusOr<FoundFolder> FindReloadFolder(const ChangeRequest& request,
                                               const FolderName& known) const;
  // The fingerprint of the folder's files, if it shows that they have the served content; else
  // nothing.
  std::optional<data::FolderFingerprint> ServedFiles(const FoundFolder& folder,
                                                     const History& history) const;
  engine::Publisher::Change MakeChange(const ChangeRequest& request, const FoundFolder& folder);
  std::optional<History> FindHistory(const std::string& name) const;
  // The folder to load again, of a collection that is not required and not served yet; else
  // nothing.
  std::optional<FolderName> RetryFolder(const std::string& name) const;
  // Keeps the name of a collection with a retry folder listed as failed, with the error of its last
  // change.
  void KeepFailed(const std::string& name, const absl::Status& error);
  // Makes what Remember takes. Called before anything is published, because it needs memory.
  static Histories::node_type Entry(const std::string& name, History history);
  // Records the history after a successful load. Takes no memory.
  void Remember(Histories::node_type entry);
  void LogUnchanged(const char* change, const std::string& name) const;
  void LogPublished(const char* change, const engine::Snapshot& published) const;
  // Counts and logs the end of a load or a rollback. Returns what is served afterwards, or the
  // error.
  Result Record(const char* change, const ChangeRequest& request,
                const absl::StatusOr<engine::Publisher::Loaded>& loaded);

  const Options options_;
  const Parts parts_;
  ChangesUnderWay under_way_;
  mutable std::mutex mutex_;  // guards histories_ and retry_folders_
  Histories histories_;
  // The folders of collections that are not required, until the collections are served.
  std::map<std::string, FolderName> retry_folders_;
};

}  // namespace simile::service
