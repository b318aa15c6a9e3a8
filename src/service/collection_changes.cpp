#include "service/collection_changes.h"

#include <utility>

#include <fmt/format.h>

#include "service/collection_name.h"
#include "service/data_root.h"

namespace simile::service {

using engine::SnapshotPtr;

CollectionChanges::CollectionChanges(Options options, const Parts& parts)
    : options_(std::move(options)), parts_(parts) {}

absl::StatusOr<SnapshotPtr> CollectionChanges::LoadAtStart(const std::string& name,
                                                           const std::filesystem::path& folder) {
  return Create(name, folder);
}

void CollectionChanges::Load(const std::string& name, const std::string& folder, Flag cancelled,
                             Done done) {
  const absl::Status allowed = CheckAllowed(name);
  if (!allowed.ok()) return done(allowed);
  Enqueue(
      [this, name, folder]() -> absl::StatusOr<SnapshotPtr> {
        const auto path = ResolveInDataRoot(options_.data_root, folder);
        if (!path.ok()) return path.status();
        return Create(name, *path);
      },
      std::move(cancelled), std::move(done));
}

void CollectionChanges::Reload(const std::string& name, Flag cancelled, Done done) {
  const absl::Status allowed = CheckAllowed(name);
  if (!allowed.ok()) return done(allowed);
  Enqueue([this, name] { return Replace(name); }, std::move(cancelled), std::move(done));
}

absl::Status CollectionChanges::Unload(const std::string& name) {
  absl::Status allowed = CheckAllowed(name);
  if (!allowed.ok()) return allowed;
  const auto removed = parts_.store.Remove(name);
  if (!removed.ok()) return removed.status();
  parts_.log.Info("collection unloaded", {{"collection", name}});
  const std::lock_guard lock(mutex_);
  folders_.erase(name);
  return absl::OkStatus();
}

absl::Status CollectionChanges::CheckAllowed(const std::string& name) const {
  if (!options_.allowed_over_wire) {
    return absl::PermissionDeniedError(
        "this server does not let collections be changed over the wire; start it with "
        "--allow-changes (collections.changes_allowed)");
  }
  return CheckCollectionName("name", name, parts_.limits);
}

void CollectionChanges::Enqueue(Work work, Flag cancelled, Done done) {
  const auto shared_done = std::make_shared<Done>(std::move(done));
  const absl::Status queued = parts_.queue.Submit(
      [work = std::move(work), cancelled = std::move(cancelled), shared_done] {
        if (cancelled->load(std::memory_order_relaxed)) {
          return (*shared_done)(
              absl::CancelledError("the caller was gone before the change began"));
        }
        (*shared_done)(work());
      },
      [shared_done] {
        (*shared_done)(absl::UnavailableError("the server is stopping; nothing was changed"));
      });
  if (!queued.ok()) (*shared_done)(queued);
}

absl::StatusOr<SnapshotPtr> CollectionChanges::Create(const std::string& name,
                                                      const std::filesystem::path& folder) {
  auto snapshot = parts_.publisher.Create(name, folder);
  if (snapshot.ok()) {
    const std::lock_guard lock(mutex_);
    folders_[name] = folder;
  }
  return Report("load", name, std::move(snapshot));
}

absl::StatusOr<SnapshotPtr> CollectionChanges::Replace(const std::string& name) {
  std::filesystem::path folder;
  {
    const std::lock_guard lock(mutex_);
    const auto known = folders_.find(name);
    if (known != folders_.end()) folder = known->second;
  }
  // Without a folder the name is unknown, loading or just removed: the store's error says which.
  if (folder.empty()) {
    auto pinned = parts_.store.Pin(name);
    return pinned.ok() ? absl::AbortedError(fmt::format("{} is being changed; try again", name))
                       : pinned.status();
  }
  return Report("reload", name, parts_.publisher.Replace(name, folder));
}

absl::StatusOr<SnapshotPtr> CollectionChanges::Report(const char* change, const std::string& name,
                                                      absl::StatusOr<SnapshotPtr> result) const {
  parts_.metrics.CountReload(result.ok());
  if (result.ok()) {
    const engine::Snapshot& snapshot = **result;
    parts_.log.Info("collection published", {{"collection", name},
                                             {"change", change},
                                             {"version", snapshot.version},
                                             {"rows", snapshot.row_count()},
                                             {"dim", snapshot.dim()}});
  } else {
    parts_.log.Warn("collection not published",
                    {{"collection", name},
                     {"change", change},
                     {"code", absl::StatusCodeToString(result.status().code())},
                     {"error", std::string(result.status().message())}});
  }
  return result;
}

}  // namespace simile::service
