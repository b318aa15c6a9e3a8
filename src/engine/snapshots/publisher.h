#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <absl/status/statusor.h>

#include "data/fingerprint.h"
#include "data/load.h"
#include "engine/snapshots/memory_plan.h"
#include "engine/snapshots/snapshot.h"
#include "engine/snapshots/snapshot_store.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::engine {

// Refuses a dimension or metric other than those of what is served.
// Errors: SHAPE_CHANGE, with both shapes.
absl::Status CheckShape(const Snapshot& served, std::uint64_t dim, Metric metric);

// Turns a folder into a serving snapshot: plan (will it fit?) -> load -> make resident -> verify ->
// publish. Any failure leaves what was served before in place, with an error that names the file,
// the row and the reason. Blocking; called from a thread that may wait (start-up, the change
// queue), never from an I/O thread. One change of a collection at a time; different collections may
// overlap.
class Publisher {
 public:
  struct Options {
    Limits limits;
    // Host bytes all collections together may take, with every generation that a call still holds.
    // 0: what the machine or its control group has available at the load, less a tenth.
    std::uint64_t memory_bytes_max = 0;
    // Called before each load when memory_bytes_max is 0.
    std::function<absl::StatusOr<HostMemory>()> read_memory = [] { return ReadHostMemory(); };
  };
  // All borrowed for the publisher's life.
  Publisher(Options options, Backend& backend, SnapshotStore& store, const Clock& clock);

  // A load that a caller asks for.
  struct Change {
    std::string collection;
    std::filesystem::path folder;
    std::filesystem::path links_within = {};  // data::Folder::Open's
    // Replace: may the dimension, the metric or the type of a payload field be another?
    bool allow_shape_change = false;
    double min_overlap = 0;        // Replace: of the answers that must stay (CheckOverlap)
    std::string required_id = {};  // Replace: the only content to publish; empty: any
    // Replace: the types that payload fields keep when required_id is set. When it is empty,
    // fields keep the types of the served snapshot.
    std::vector<data::KeptType> required_types = {};
    // Called on the loading thread after each read and at each new stage; may be empty.
    std::function<void(const ChangeProgress& progress)> progress = {};
  };
  struct Loaded {
    SnapshotPtr snapshot;
    // Of the files that were read; empty when none was. Ready to be moved from: once something is
    // published, nothing may take memory.
    data::FolderFingerprint fingerprint;
    std::string content_id;
    std::vector<data::KeptType> field_types;  // of its payload, likewise
    bool published = true;  // false: that content was served already, and still is
  };
  // Loads the folder as a new collection. Errors: those of BeginCreate, PlanDataset, LoadDataset;
  // DOES_NOT_FIT when the plan does not fit, with bytes needed and free; kInternal when the index
  // fails its verification (then nothing was published).
  absl::StatusOr<Loaded> Create(const Change& change);
  // Loads the folder in place of what is served. Content that is served already is not published
  // again. Errors: those of BeginReplace, of CheckScoresDiffer and CheckOverlap, and the others of
  // Create; SHAPE_CHANGE, for vectors before anything but headers is read; NOTHING_TO_ROLL_BACK
  // when the folder does not have the required content.
  absl::StatusOr<Loaded> Replace(const Change& change);
  // Publishes a generation that is still in memory again, in place of what is served.
  // Errors: those of BeginReplace.
  absl::StatusOr<Loaded> Restore(const std::string& collection, const Snapshot& earlier);

 private:
  class Claim;
  class Report;

  //   served  what the change replaces; null for none
  absl::StatusOr<Loaded> LoadAndPublish(const Change& change, const SnapshotPtr& served,
                                        Claim& claim);
  // Indexes and verifies; publishes nothing.
  absl::StatusOr<Snapshot> Build(const std::string& collection, data::Dataset loaded,
                                 Report& report);
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

  // Of generations that are not freed; snapshots share it, since they may outlive the publisher.
  const std::shared_ptr<HeldMemory::Sum> held_bytes_ = std::make_shared<HeldMemory::Sum>(0);
  std::mutex mutex_;  // guards reserved_bytes_
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace simile::engine
