#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/snapshots/snapshot.h"
#include "engine/snapshots/snapshot_store.h"
#include "service/calls/caller_shares.h"
#include "service/changes/data_root.h"
#include "simile/clock.h"

namespace simile::service {

enum class ChangeKind : std::uint8_t { kLoad, kReload, kRollback, kUnload };

// A change as its caller asks for it. Equal requests are the same change; logs_failure is not
// compared.
struct ChangeRequest {
  ChangeKind kind = ChangeKind::kLoad;
  std::string collection;
  FolderName folder;  // kReload: empty for the folder served now; kRollback and kUnload: empty
  bool allow_shape_change = false;  // kReload, kRollback
  // kReload; 0..1, in place of the server's own minimum.
  std::optional<double> min_overlap = std::nullopt;
  std::string expected_snapshot_id;  // all but kLoad; empty: any
  bool logs_failure = true;          // false: the code that asks reports the failure

  friend bool operator==(const ChangeRequest& a, const ChangeRequest& b) {
    const auto asked = [](const ChangeRequest& request) {
      return std::tie(request.kind, request.collection, request.folder, request.allow_shape_change,
                      request.min_overlap, request.expected_snapshot_id);
    };
    return asked(a) == asked(b);
  }
};

// A call that waits for a change.
struct ChangeCaller {
  // Called at each new stage and at the end, and otherwise at most five times a second. Never
  // called after `done`, and never twice at once. May be empty. Must not block or throw.
  std::function<void(const engine::ChangeProgress& progress)> progress;
  // Called exactly once. Must not throw.
  std::function<void(const absl::StatusOr<engine::SnapshotPtr>& result)> done;
  // Is requested to stop when the caller has left. `done` is then called with CANCELLED, the next
  // time that any change reports or is asked for. The token may have no source.
  std::stop_token left;
  // The key of a call's caller. Nothing for the server's own changes, which are always let in.
  std::optional<CallerKey> key;
};

// The changes of collections that are under way or wait, and the calls that wait for each change. A
// collection has at most one change at a time. Safe to use from any thread. Callers are called back
// on the thread that reports, and are answered even when memory runs out.
class ChangesUnderWay {
 public:
  // clock  borrowed
  explicit ChangesUnderWay(const Clock& clock);

  // Adds the caller to the same change if it is under way; otherwise begins the change.
  //   began  set to whether the change was begun: then the caller of Join makes it and calls End
  // Errors: CHANGE_IN_PROGRESS when another change of the collection is under way;
  // CHANGE_QUEUE_FULL when very many calls wait, or many of this caller; STOPPING. After an error
  // or an exception `done` is not called.
  absl::Status Join(const ChangeRequest& request, ChangeCaller caller, bool& began);
  // REQUIRES of both: the change was begun and has not ended.
  void Report(const std::string& collection, const engine::ChangeProgress& progress);
  void End(const std::string& collection, const absl::StatusOr<engine::SnapshotPtr>& result);

  bool Has(const std::string& collection) const;
  // Waits until no change of the collection is under way, or until Stop is called.
  void AwaitEnd(const std::string& collection) const;
  bool empty() const;

  // Answers every caller with STOPPING and refuses changes from now on. The changes themselves
  // continue: the code that began a change still ends it.
  void Stop();

 private:
  using Callers = std::list<ChangeCaller>;  // moved from list to list without allocating
  struct Change {
    ChangeRequest request;
    engine::ChangeProgress progress;
    Clock::TimePoint sent_at;
    Callers callers;
  };

  // REQUIRES of these: mutex_ is held.
  absl::Status AddCaller(const ChangeRequest& request, ChangeCaller caller, bool& began);
  // Removes the callers that have left.
  Callers TakeThoseWhoLeft();
  // Frees the places of these callers.
  void Release(const Callers& callers);

  const Clock& clock_;
  // Made in advance: a copy of a status shares its text, so an answer needs no memory.
  const absl::Status stopping_;
  const absl::Status left_;
  mutable std::mutex mutex_;  // guards everything below, and is held while progress is sent
  mutable std::condition_variable ended_;
  std::map<std::string, Change> changes_;
  CallerShares places_;  // of callers with a key
  bool stopped_ = false;
};

}  // namespace simile::service
