#include "service/changes/served_collections.h"

#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "service/calls/call.h"

namespace simile::service {
namespace {

using base::ErrorReason;

// Whether the text of a change's error has only what its caller sent or may see, and nothing that
// was read from files.
bool IsOfTheRequestAlone(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kInvalidField:
    case ErrorReason::kCollectionNotFound:
    case ErrorReason::kCollectionExists:
    case ErrorReason::kSnapshotMismatch:
    case ErrorReason::kChangesNotAllowed:
    case ErrorReason::kPermissionDenied:
    case ErrorReason::kOutsideDataRoot:
    case ErrorReason::kChangeQueueFull:
    case ErrorReason::kDeadlineExceeded:
    case ErrorReason::kCancelled:
    case ErrorReason::kStopping:
    case ErrorReason::kOutOfMemory:
      return true;
    default:
      return false;
  }
}

// Whether the error's text is kept from the caller of the change.
bool HidesText(const PermittedCollection& collection, const absl::Status& status) {
  return !status.ok() && !collection.sees_all_rows_and_users() &&
         !IsOfTheRequestAlone(base::ReasonOf(status));
}

// The error of a change, as its caller may read it: with the same reason.
absl::Status ChangeError(const PermittedCollection& collection, const absl::Status& status) {
  if (!HidesText(collection, status)) return collection.WithoutOtherNames(status);
  return base::OrOutOfMemory([&] {
    return base::WithMessage(
        status, fmt::format("{} was not changed; the server's log has the details under the "
                            "request id of this call",
                            collection.name()));
  });
}

// Writes the line of the audit about the end of a change. Returns what the caller may read of the
// status.
absl::Status AuditEnd(const PermittedCollection& collection, const ChangeAudit& audit,
                      const absl::Status& status) {
  audit.Ended(status, HidesText(collection, status) ? ChangeAudit::Text::kWritten
                                                    : ChangeAudit::Text::kLeftOut);
  return ChangeError(collection, status);
}

// What a caller for whom only some rows or users exist sees of a change under way.
engine::ChangeProgress VisibleProgress(const engine::ChangeProgress& progress) {
  engine::ChangeProgress visible;
  visible.stage = progress.stage;
  visible.share = progress.share;
  return visible;
}

}  // namespace

absl::StatusOr<PermittedStatus> ServedCollections::Status(
    const PermittedCollection& collection) const {
  auto status = store_.Get(collection.name());
  if (!status.ok()) return collection.WithoutOtherNames(status.status());
  return MakeStatus(collection, *std::move(status));
}

void ServedCollections::ForEach(
    const CallAccess& access, std::string_view after,
    const std::function<bool(const PermittedStatus& status)>& visit) const {
  for (engine::CollectionStatus& status : store_.List()) {
    if (status.name <= after) continue;
    const auto permitted = access.Permit(status.name);
    if (permitted.ok() && !visit(MakeStatus(*permitted, std::move(status)))) return;
  }
}

absl::Status ServedCollections::Start(const PermittedCollection& collection, ChangeRequest request,
                                      const std::shared_ptr<const ChangeAudit>& audit,
                                      PermittedChangeCaller caller) const {
  const absl::Status started = Guarded([&] {
    absl::Status allowed = collection.CheckMayChange();
    allowed.Update(collection.CheckFolder(request.folder.path));
    if (!allowed.ok()) return allowed;
    request.collection = collection.name();
    const bool reads = request.kind == ChangeKind::kLoad || request.kind == ChangeKind::kReload;
    if (reads && !collection.sees_all_collections()) request.folder.within = collection.name();
    return changes_.Start(std::move(request),
                          MakeChangeCaller(collection, audit, std::move(caller)));
  });
  if (started.ok()) return started;
  return AuditEnd(collection, *audit, started);
}

absl::Status ServedCollections::Unload(const PermittedCollection& collection,
                                       const std::string& expected_snapshot_id,
                                       const ChangeAudit& audit) const {
  absl::Status status = collection.CheckMayChange();
  if (status.ok()) status = changes_.Unload(collection.name(), expected_snapshot_id);
  return AuditEnd(collection, audit, status);
}

PermittedStatus ServedCollections::MakeStatus(const PermittedCollection& collection,
                                              engine::CollectionStatus status) const {
  PermittedStatus permitted{std::move(status.name), status.state, {}, {}, {}, {}};
  if (status.progress && !collection.sees_all_rows_and_users()) {
    status.progress = VisibleProgress(*status.progress);
  }
  permitted.progress = std::move(status.progress);
  if (!status.problem.ok()) {
    permitted.load_error = collection.sees_all_rows_and_users()
                               ? std::string(status.problem.message())
                               : "the folder did not load; the server's log says why";
  }
  if (status.snapshot == nullptr) return permitted;
  permitted.origin = changes_.FindOrigin(*status.snapshot);
  if (!collection.sees_all_rows_and_users()) {
    permitted.origin.folder.clear();
    permitted.origin.loaded_from.clear();
  }
  permitted.snapshot = PermittedSnapshot(collection, std::move(status.snapshot));
  return permitted;
}

ChangeCaller ServedCollections::MakeChangeCaller(const PermittedCollection& collection,
                                                 const std::shared_ptr<const ChangeAudit>& audit,
                                                 PermittedChangeCaller caller) const {
  ChangeCaller waiting;
  waiting.progress = [collection, report = std::move(caller.progress)](const auto& progress) {
    if (collection.sees_all_rows_and_users()) return report(progress);
    report(VisibleProgress(progress));
  };
  waiting.done = [this, collection, audit, done = std::move(caller.done)](
                     const absl::StatusOr<engine::SnapshotPtr>& result) {
    const absl::Status end = AuditEnd(collection, *audit, result.status());
    if (!end.ok()) return done(end);
    absl::StatusOr<PermittedStatus> served;
    const absl::Status made = Guarded([&] {
      served = MakeStatus(
          collection, {(*result)->collection, engine::CollectionState::kServing, {}, *result, {}});
    });
    done(made.ok() ? std::move(served) : made);
  };
  waiting.left = std::move(caller.left);
  waiting.key = caller.key;
  return waiting;
}

}  // namespace simile::service
