#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include <absl/status/statusor.h>

#include "data/load.h"
#include "engine/snapshots/host_memory.h"
#include "engine/snapshots/snapshot_store.h"
#include "engine/snapshots/verify_index.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::engine {

// Turns a folder into a serving snapshot: plan (will it fit?) -> load -> make resident -> verify ->
// publish. Any failure leaves what was served before in place, with an error that names the file,
// the row and the reason. Blocking; called from a thread that may wait (start-up, the change
// queue), never from a gRPC thread. One change of a collection at a time; different collections may
// overlap.
class Publisher {
 public:
  struct Options {
    Limits limits;
    // Host bytes all collections together may take, old and new generation included.
    // 0: what the machine or its control group has available at the load, less a tenth.
    std::uint64_t memory_bytes_max = 0;
    // Called before each load when memory_bytes_max is 0.
    std::function<absl::StatusOr<HostMemory>()> read_memory = [] { return ReadHostMemory(); };
  };
  // All borrowed for the publisher's life.
  Publisher(Options options, Backend& backend, SnapshotStore& store, const Clock& clock);

  // Loads `folder` as a new collection. Errors: those of BeginCreate, PlanDataset, LoadDataset;
  // kResourceExhausted when the plan does not fit, with bytes needed and free; kInternal when the
  // index fails its verification (then nothing was published).
  absl::StatusOr<SnapshotPtr> Create(const std::string& collection,
                                     const std::filesystem::path& folder);
  // Loads the folder again in place of what is served.
  absl::StatusOr<SnapshotPtr> Replace(const std::string& collection,
                                      const std::filesystem::path& folder);

 private:
  absl::StatusOr<SnapshotPtr> BuildAndPublish(const std::string& collection,
                                              const std::filesystem::path& folder);
  // Loads, indexes and verifies; publishes nothing.
  absl::StatusOr<Snapshot> Build(const std::string& collection, const data::DatasetPlan& plan);
  // Returns the bytes that a load is promised from its plan to its end, so that two loads at once
  // are never promised the same memory. What the other load has already allocated is counted twice,
  // so a load may be refused that would fit; never the reverse.
  absl::StatusOr<std::uint64_t> Reserve(const std::string& collection,
                                        const data::DatasetPlan& plan);
  // What may be allocated now, before reservations, and a clause for the message that says why.
  struct Budget {
    std::uint64_t bytes = 0;
    std::string reason;
  };
  absl::StatusOr<Budget> ReadBudget() const;

  const Options options_;
  Backend& backend_;
  SnapshotStore& store_;
  const Clock& clock_;

  std::mutex mutex_;  // guards reserved_bytes_
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace simile::engine
