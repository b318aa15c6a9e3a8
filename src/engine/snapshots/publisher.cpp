#include "engine/snapshots/publisher.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/memory_pages.h"
#include "base/message_text.h"
#include "data/load/collection_files.h"
#include "engine/snapshots/memory_plan.h"
#include "engine/snapshots/publish_checks.h"

namespace simile::engine {
namespace {

// The progress of a change when its dataset is read, and when its index is made. Reading takes the
// longest.
constexpr double kDatasetRead = 0.8;
constexpr double kIndexBuilt = 0.95;

std::string ShapeText(std::uint64_t dim, Metric metric) {
  return fmt::format("{} ({})", base::Counted(dim, "dimension"), data::NameOf(metric));
}

absl::Status OtherContent(const std::string& collection) {
  return base::Error(
      base::ErrorReason::kNothingToRollBack,
      fmt::format(
          "{}: the folder of the earlier generation now holds other content; nothing was changed",
          collection));
}

// A backend's error, with its reason.
absl::Status IndexError(const absl::Status& error) {
  return base::WithReason(error, error.code() == absl::StatusCode::kResourceExhausted
                                     ? base::ErrorReason::kDoesNotFit
                                     : base::ErrorReason::kInternal);
}

// The host bytes of a snapshot; an index that is not built yet counts as planned.
std::uint64_t PlannedBytes(const Snapshot& snapshot) {
  const ResidentBytes bytes = SumBytes(snapshot);
  return bytes.host() - bytes.index + std::max(bytes.index, snapshot.index_plan.host_bytes);
}

// Notes which kinds of data the former content has and the new content lacks: a folder without the
// files of users, or without payload, still loads.
void NoteLosses(const data::Dataset& before, data::Dataset& after) {
  const auto lost = [&](const char* what, std::uint64_t had, std::uint64_t has) {
    if (had == 0 || has > 0) return;
    after.notes.push_back(
        fmt::format("no {}s; the former content had {}", what, base::Counted(had, what)));
  };
  lost("user", before.profiles.ids.size(), after.profiles.ids.size());
  lost("seen item", before.profiles.most_seen.size(), after.profiles.most_seen.size());
  lost("payload field", before.payload.fields().size(), after.payload.fields().size());
}

absl::Status OutOfMemory(const std::string& collection) {
  return base::Error(
      base::ErrorReason::kDoesNotFit,
      fmt::format("{} does not fit: memory ran out while it was loaded", collection));
}

}  // namespace

absl::Status CheckShape(const Snapshot& served, std::uint64_t dim, Metric metric) {
  const Metric served_metric = served.dataset->metric;
  if (dim == served.dim() && metric == served_metric) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kShapeChange,
      fmt::format("allow_shape_change: {} has {}, the new snapshot would have {}: vectors that "
                  "callers send would no longer fit; set it to accept that",
                  served.collection, ShapeText(served.dim(), served_metric),
                  ShapeText(dim, metric)),
      "allow_shape_change");
}

// The progress of one change. One thread at a time.
class Publisher::Report {
 public:
  Report(SnapshotStore& store, const Change& change) : store_(store), change_(change) {
    Enter(ChangeStage::kReading, 0);
  }

  void Read(const data::ReadProgress& read) {
    progress_.file = read.file;
    progress_.bytes_read = read.bytes_read;
    progress_.bytes_total = read.bytes_total;
    const double bytes = std::max(1.0, static_cast<double>(read.bytes_total));
    progress_.share = kDatasetRead * static_cast<double>(read.bytes_read) / bytes;
    Send();
  }
  void Enter(ChangeStage stage, double share) {
    progress_.stage = stage;
    progress_.share = share;
    progress_.file.clear();
    Send();
  }

 private:
  void Send() const {
    store_.SetProgress(change_.collection, progress_);
    if (change_.progress) change_.progress(progress_);
  }

  SnapshotStore& store_;
  const Change& change_;
  ChangeProgress progress_;
};

// A claimed collection. The destructor gives the claim up, unless a snapshot was published.
class Publisher::Claim {
 public:
  Claim(SnapshotStore& store, const std::string& collection)
      : store_(store), collection_(collection) {}
  ~Claim() {
    if (!published_) store_.AbandonChange(collection_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  SnapshotPtr Publish(Snapshot snapshot) {
    SnapshotPtr current = store_.Publish(collection_, std::move(snapshot)).current;
    published_ = true;
    return current;
  }

 private:
  SnapshotStore& store_;
  const std::string& collection_;
  bool published_ = false;
};

Publisher::Publisher(Options options, Backend& backend, SnapshotStore& store, const Clock& clock)
    : options_(std::move(options)), backend_(backend), store_(store), clock_(clock) {}

absl::StatusOr<Publisher::Loaded> Publisher::Create(const Change& change) {
  if (absl::Status status = store_.BeginCreate(change.collection); !status.ok()) return status;
  Claim claim(store_, change.collection);
  return LoadAndPublish(change, nullptr, claim);
}

absl::StatusOr<Publisher::Loaded> Publisher::Replace(const Change& change) {
  if (absl::Status status = store_.BeginReplace(change.collection); !status.ok()) return status;
  Claim claim(store_, change.collection);
  return LoadAndPublish(change, store_.Pin(change.collection).value(), claim);
}

absl::StatusOr<Publisher::Loaded> Publisher::Restore(const std::string& collection,
                                                     const Snapshot& earlier) {
  if (absl::Status status = store_.BeginReplace(collection); !status.ok()) return status;
  Claim claim(store_, collection);
  try {
    Snapshot restored = earlier;
    restored.overlap.reset();
    return Loaded{claim.Publish(std::move(restored)), {}, {}, {}, true};
  } catch (const std::bad_alloc&) {
    return OutOfMemory(collection);
  }
}

absl::StatusOr<Publisher::Loaded> Publisher::LoadAndPublish(const Change& change,
                                                            const SnapshotPtr& served,
                                                            Claim& claim) {
  try {
    Report report(store_, change);
    absl::StatusOr<data::DatasetPlan> plan =
        data::PlanDataset(change.folder, options_.limits, change.links_within);
    if (!plan.ok()) return plan.status();
    if (served != nullptr) {
      plan->kept_types = {change.required_id.empty() ? data::ListKeptTypes(*served->dataset)
                                                     : change.required_types,
                          change.allow_shape_change};
    }
    if (served != nullptr && !change.allow_shape_change) {
      if (absl::Status same = CheckShape(*served, plan->dim, plan->files.metric); !same.ok()) {
        return same;
      }
    }
    const absl::StatusOr<std::uint64_t> reserved = Reserve(change.collection, *plan);
    if (!reserved.ok()) return reserved.status();
    const absl::Cleanup release = [&] {
      const std::lock_guard lock(mutex_);
      reserved_bytes_ -= *reserved;
    };
    absl::StatusOr<data::Dataset> dataset = data::LoadDataset(
        *plan, options_.limits, [&](const data::ReadProgress& read) { report.Read(read); });
    if (!dataset.ok()) return dataset.status();
    if (!change.required_id.empty() && dataset->content_id != change.required_id) {
      return OtherContent(change.collection);
    }
    Loaded loaded;
    loaded.fingerprint = dataset->fingerprint;
    loaded.content_id = dataset->content_id;
    loaded.field_types = data::ListKeptTypes(*dataset);
    if (served != nullptr && served->id == dataset->content_id) {
      loaded.snapshot = served;
      loaded.published = false;
      return loaded;
    }
    if (served != nullptr) NoteLosses(*served->dataset, *dataset);
    absl::StatusOr<Snapshot> snapshot = Build(change.collection, *std::move(dataset), report);
    if (!snapshot.ok()) return snapshot.status();
    if (served != nullptr && change.required_id.empty()) {  // a required content has served before
      const absl::Status differ = CheckScoresDiffer(*served, *snapshot);
      if (!differ.ok()) return differ;
      const absl::StatusOr<Overlap> overlap = MeasureOverlap(*served, *snapshot);
      if (overlap.ok()) {
        const absl::Status enough = CheckOverlap(*overlap, change.min_overlap);
        if (!enough.ok()) return enough;
        if (overlap->items > 0) snapshot->overlap = overlap->share;
      } else if (change.min_overlap > 0) {
        return overlap.status();
      }
    }
    report.Enter(ChangeStage::kVerifying, 1);
    // The last step, because nothing may fail once the snapshot serves.
    loaded.snapshot = claim.Publish(*std::move(snapshot));
    return loaded;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(change.collection);
  }
}

absl::StatusOr<Snapshot> Publisher::Build(const std::string& collection, data::Dataset loaded,
                                          Report& report) {
  report.Enter(ChangeStage::kIndexing, kDatasetRead);
  const auto dataset = std::make_shared<const data::Dataset>(std::move(loaded));
  Snapshot snapshot;
  snapshot.id = dataset->content_id;
  snapshot.dataset = dataset;
  snapshot.searchable = SearchableRows(*dataset);
  snapshot.text_index = std::make_shared<const filter::TextIndex>(
      filter::TextIndex::Build(dataset->payload, dataset->lookup_fields));
  snapshot.filters = filter::Filters::Create(*dataset, collection);
  base::ReturnFreedMemory();
  snapshot.index_plan =
      backend_.Plan({dataset->vectors.row_count(), dataset->vectors.dim(), dataset->metric});
  const SegmentRows rows{dataset->vectors.view(), dataset, dataset->metric, 0};
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> segment = backend_.MakeResident(rows);
  if (!segment.ok()) return IndexError(segment.status());
  report.Enter(ChangeStage::kVerifying, kIndexBuilt);
  if (absl::Status status = VerifyIndex(**segment, rows.rows, rows.first_row); !status.ok()) {
    return status;
  }
  snapshot.segments.push_back(*std::move(segment));
  snapshot.memory = std::make_shared<const HeldMemory>(held_bytes_, PlannedBytes(snapshot));
  snapshot.loaded_at = clock_.WallNow();
  return snapshot;
}

absl::StatusOr<std::uint64_t> Publisher::Reserve(const std::string& collection,
                                                 const data::DatasetPlan& plan) {
  const absl::StatusOr<DataBytes> data = PlanData(plan, options_.limits);
  if (!data.ok()) return data.status();
  const MemoryPlan memory =
      PlanMemory(*data, backend_.Plan({plan.row_count, plan.dim, plan.files.metric}));
  const std::uint64_t needed = memory.peak_bytes();
  // Drop page leases first: the new generation needs the memory.
  store_.EndLeases();
  store_.AwaitReclaimed();

  // Memory is read under the lock. Otherwise a load that ends meanwhile would count neither as
  // reserved nor as resident.
  const std::lock_guard lock(mutex_);
  absl::StatusOr<Budget> budget = ReadBudget();
  if (!budget.ok()) return budget.status();
  const std::uint64_t free = budget->bytes - std::min(budget->bytes, reserved_bytes_);
  if (needed > free) {
    const std::uint64_t passing = needed - std::min(needed, memory.resident.host());
    return base::Error(
        base::ErrorReason::kDoesNotFit,
        fmt::format("{} does not fit: it needs {} (vectors {}, payload {}, users {}, index {}{}); "
                    "{} may be "
                    "taken: {}{}",
                    collection, base::BytesText(needed), base::BytesText(memory.resident.vectors),
                    base::BytesText(memory.resident.payload),
                    base::BytesText(memory.resident.users), base::BytesText(memory.resident.index),
                    passing == 0
                        ? ""
                        : fmt::format(", and {} while it is loaded", base::BytesText(passing)),
                    base::BytesText(free), budget->reason,
                    reserved_bytes_ == 0 ? ""
                                         : fmt::format(", less {} promised to a load under way",
                                                       base::BytesText(reserved_bytes_))));
  }
  reserved_bytes_ += needed;
  return needed;
}

absl::StatusOr<Publisher::Budget> Publisher::ReadBudget() const {
  if (options_.memory_bytes_max == 0) {
    absl::StatusOr<HostMemory> memory = options_.read_memory();
    if (absl::IsResourceExhausted(memory.status())) return memory.status();
    if (!memory.ok()) {
      return base::Error(
          base::ErrorReason::kInternal,
          fmt::format("cannot tell how much memory is free ({}); set collections.memory_bytes_max",
                      std::string(memory.status().message())));
    }
    return Budget{MayBeTaken(*memory),
                  fmt::format("nine tenths of the {} {}", base::BytesText(memory->available_bytes),
                              memory->origin)};
  }
  std::uint64_t resident = *held_bytes_;
  for (const CollectionStatus& status : store_.List()) {
    if (status.snapshot == nullptr || status.snapshot->memory == nullptr) continue;
    // The bytes that the snapshot has taken for filters since it was published.
    const std::uint64_t counted = status.snapshot->memory->bytes();
    resident += std::max(PlannedBytes(*status.snapshot), counted) - counted;
  }
  return Budget{options_.memory_bytes_max - std::min(options_.memory_bytes_max, resident),
                fmt::format("of the {} allowed for all collections {} is in use",
                            base::BytesText(options_.memory_bytes_max), base::BytesText(resident))};
}

}  // namespace simile::engine
