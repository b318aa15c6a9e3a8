#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/snapshots/snapshot_store.h"
#include "service/access/call_access.h"
#include "service/access/served_snapshots.h"
#include "service/calls/caller_shares.h"
#include "service/changes/change_audit.h"
#include "service/changes/collection_changes.h"

namespace simile::service {

// A collection as a caller may see it. If some rows or users do not exist for the caller, the
// progress has no file and no bytes, and the origin has no folder.
struct PermittedStatus {
  std::string name;
  engine::CollectionState state = engine::CollectionState::kLoading;
  std::optional<engine::ChangeProgress> progress;  // of the load under way; nothing while kServing
  std::optional<PermittedSnapshot> snapshot;       // nothing before the first publish
  CollectionChanges::Origin origin;                // of the snapshot
  std::string load_error;                          // of CollectionState::kFailed
};

// A call that waits for a change; see ChangeCaller.
struct PermittedChangeCaller {
  std::function<void(const engine::ChangeProgress& progress)> progress;
  std::function<void(const absl::StatusOr<PermittedStatus>& served)> done;
  std::stop_token left;
  std::optional<CallerKey> key;
};

// The only way from handlers to collections and their changes: each function requires what a call
// may use. If some rows or users do not exist for a caller, errors of changes do not say what was
// read; the line of the audit does. Owned by the RPC services; borrows its parts. Safe to use from
// any thread.
class ServedCollections {
 public:
  ServedCollections(engine::SnapshotStore& store, CollectionChanges& changes)
      : store_(store), changes_(changes), snapshots_(store) {}

  const ServedSnapshots& snapshots() const { return snapshots_; }

  // Errors: COLLECTION_NOT_FOUND.
  absl::StatusOr<PermittedStatus> Status(const PermittedCollection& collection) const;
  // Calls visit(status), in order of names, for the collections that exist for the caller and whose
  // names come after `after`. Ends when visit returns false.
  void ForEach(const CallAccess& access, std::string_view after,
               const std::function<bool(const PermittedStatus& status)>& visit) const;

  // CollectionChanges::Start and Unload, for a caller whose role may change collections. The audit
  // gets how the change ends, with the full errors.
  // Errors: those of the two functions; PERMISSION_DENIED for the role or the folder.
  absl::Status Start(const PermittedCollection& collection, ChangeRequest request,
                     const std::shared_ptr<const ChangeAudit>& audit,
                     PermittedChangeCaller caller) const;
  absl::Status Unload(const PermittedCollection& collection,
                      const std::string& expected_snapshot_id, const ChangeAudit& audit) const;

 private:
  PermittedStatus MakeStatus(const PermittedCollection& collection,
                             engine::CollectionStatus status) const;
  ChangeCaller MakeChangeCaller(const PermittedCollection& collection,
                                const std::shared_ptr<const ChangeAudit>& audit,
                                PermittedChangeCaller caller) const;

  engine::SnapshotStore& store_;
  CollectionChanges& changes_;
  const ServedSnapshots snapshots_;
};

}  // namespace simile::service
