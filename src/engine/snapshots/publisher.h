#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <absl/status/statusor.h>

#include "data/load/fingerprint.h"
#include "data/load/load.h"
#include "engine/snapshots/memory_plan.h"
#include "engine/snapshots/snapshot.h"
#include "engine/snapshots/snapshot_store.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::engine {

// Refuses a dimension or metric that differs from the served snapshot's.
// Errors: SHAPE_CHANGE, with both shapes.
absl::Status CheckShape(const Snapshot& served, std::uint64_t dim, Metric metric);

// Turns a folder into a serving snapshot: plan (will it fit?) -> load -> make resident -> verify ->
// publish. After any failure the former snapshot still serves, and the error names the file, the
// row and the reason. Blocking: called from a thread that may wait (start-up, the change queue),
// never from an I/O thread. A collection has one change at a time; changes of different collections
// may overlap.
class Publisher {
 public:
  struct Options {
    Limits limits;
    // The host bytes that all collections together may take, including every generation that a call
    // still holds. 0: nine tenths of what the machine or its control group has available at the
    // load.
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
    // Replace: whether the dimension, the metric or the type of a payload field may change.
    bool allow_shape_change = false;
    double min_overlap = 0;        // Replace: share of the answers that must stay (CheckOverlap)
    std::string required_id = {};  // Replace: the only content to publish; empty: any
    // Replace: the types that payload fields keep when required_id is set. When it is empty,
    // fields keep the types of the served snapshot.
    std::vector<data::KeptType> required_types = {};
    // Called on the loading thread after each read and at each new stage; may be empty.
    std::function<void(const ChangeProgress& progress)> progress = {};
  };
  struct Loaded {
    SnapshotPtr snapshot;
    // The fingerprint of the files that were read; empty when none was. Callers move it out,
    // because nothing may take memory after a publication.
    data::FolderFingerprint fingerprint;
    std::string content_id;
    std::vector<data::KeptType> field_types;  // of its payload; callers move them out, too
    bool published = true;                    // false: the content was served already and still is
  };
  // Loads the folder as a new collection. Errors: those of BeginCreate, PlanDataset, LoadDataset;
  // DOES_NOT_FIT when the plan does not fit, with bytes needed and free; kInternal when the index
  // fails its verification. After an error nothing is published.
  absl::StatusOr<Loaded> Create(const Change& change);
  // Loads the folder in place of the served snapshot. Content that is served already is not
  // published again. Errors: those of BeginReplace, CheckScoresDiffer, CheckOverlap and Create;
  // SHAPE_CHANGE, for vectors before more than headers is read; NOTHING_TO_ROLL_BACK when the
  // folder does not have the required content.
  absl::StatusOr<Loaded> Replace(const Change& change);
  // Publishes an earlier generation that is still in memory, in place of the served one.
  // Errors: those of BeginReplace.
  absl::StatusOr<Loaded> Restore(const std::string& collection, const Snapshot& earlier);

 private:
  class Claim;
  class Report;

  //   served  the snapshot that the change replaces; null for none
  absl::StatusOr<Loaded> LoadAndPublish(const Change& change, const SnapshotPtr& served,
                                        Claim& claim);
  // Indexes and verifies; publishes nothing.
  absl::StatusOr<Snapshot> Build(const std::string& collection, data::Dataset loaded,
                                 Report& report);
  // Reserves the bytes of a load from its plan to its end, and returns them. So two loads at once
  // never get the same memory. Memory that the other load has already allocated counts twice. So a
  // load that fits may be refused, but a load that does not fit is never accepted.
  absl::StatusOr<std::uint64_t> Reserve(const std::string& collection,
                                        const data::DatasetPlan& plan);
  // The bytes that may be allocated now, before reservations, and a clause for the message that
  // says why.
  struct Budget {
    std::uint64_t bytes = 0;
    std::string reason;
  };
  absl::StatusOr<Budget> ReadBudget() const;

  const Options options_;
  Backend& backend_;
  SnapshotStore& store_;
  const Clock& clock_;

  // The bytes of generations that are not freed. Snapshots share the counter, because they may
  // outlive the publisher.
  const std::shared_ptr<HeldMemory::Sum> held_bytes_ = std::make_shared<HeldMemory::Sum>(0);
  std::mutex mutex_;  // guards reserved_bytes_
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace simile::engine
