#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <absl/status/statusor.h>

#include "engine/snapshots/change_queue.h"
#include "engine/snapshots/publisher.h"
#include "engine/snapshots/snapshot_store.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/limits.h"

namespace simile::service {

// Loads, reloads and unloads collections, and keeps the folder of each. Owned by wiring; its parts
// outlive it. Safe to use from any thread.
class CollectionChanges {
 public:
  struct Options {
    bool allowed_over_wire = false;
    std::filesystem::path data_root;  // Load reads only below it; empty: Load is refused
  };
  struct Parts {
    engine::Publisher& publisher;
    engine::SnapshotStore& store;
    engine::ChangeQueue& queue;
    observe::Metrics& metrics;
    const observe::Logger& log;
    const Limits& limits;
  };
  CollectionChanges(Options options, const Parts& parts);

  // Loads a folder that the operator configured, inside the data root or not. Blocking: for
  // start-up. Errors: those of Publisher::Create.
  absl::StatusOr<engine::SnapshotPtr> LoadAtStart(const std::string& name,
                                                  const std::filesystem::path& folder);

  // Changes requested by a remote caller. `done` is called exactly once: before the return when the
  // change is refused, else from the change queue's thread. A change whose caller is gone before it
  // begins is not made.
  // Errors: kPermissionDenied unless changes are allowed; kInvalidArgument for the name;
  //         those of ResolveInDataRoot, Publisher::Create and Replace; kResourceExhausted when too
  //         many changes wait; kUnavailable when the server stops first; kCancelled.
  using Done = std::function<void(absl::StatusOr<engine::SnapshotPtr>)>;
  using Flag = std::shared_ptr<const std::atomic<bool>>;
  void Load(const std::string& name, const std::string& folder, Flag cancelled, Done done);
  void Reload(const std::string& name, Flag cancelled, Done done);
  // Does not block: reads nothing, and another thread frees the memory.
  absl::Status Unload(const std::string& name);

 private:
  using Work = std::function<absl::StatusOr<engine::SnapshotPtr>()>;

  absl::Status CheckAllowed(const std::string& name) const;
  void Enqueue(Work work, Flag cancelled, Done done);
  absl::StatusOr<engine::SnapshotPtr> Create(const std::string& name,
                                             const std::filesystem::path& folder);
  absl::StatusOr<engine::SnapshotPtr> Replace(const std::string& name);
  absl::StatusOr<engine::SnapshotPtr> Report(const char* change, const std::string& name,
                                             absl::StatusOr<engine::SnapshotPtr> result) const;

  const Options options_;
  const Parts parts_;
  std::mutex mutex_;  // guards folders_
  std::map<std::string, std::filesystem::path> folders_;
};

}  // namespace simile::service
