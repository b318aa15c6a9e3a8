#include "engine/snapshots/publisher.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::engine {
namespace {

// A change's progress when its dataset is read, and when its index is made; reading dominates.
constexpr double kDatasetRead = 0.8;
constexpr double kIndexBuilt = 0.95;

}  // namespace

Publisher::Publisher(Options options, Backend& backend, SnapshotStore& store, const Clock& clock)
    : options_(std::move(options)), backend_(backend), store_(store), clock_(clock) {}

absl::StatusOr<SnapshotPtr> Publisher::Create(const std::string& collection,
                                              const std::filesystem::path& folder) {
  if (absl::Status status = store_.BeginCreate(collection); !status.ok()) return status;
  return BuildAndPublish(collection, folder);
}

absl::StatusOr<SnapshotPtr> Publisher::Replace(const std::string& collection,
                                               const std::filesystem::path& folder) {
  if (absl::Status status = store_.BeginReplace(collection); !status.ok()) return status;
  return BuildAndPublish(collection, folder);
}

absl::StatusOr<SnapshotPtr> Publisher::BuildAndPublish(const std::string& collection,
                                                       const std::filesystem::path& folder) {
  absl::Cleanup abandon = [&] { store_.AbandonChange(collection); };
  absl::StatusOr<data::DatasetPlan> plan = data::PlanDataset(folder, options_.limits);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<std::uint64_t> reserved = Reserve(collection, *plan);
  if (!reserved.ok()) return reserved.status();
  const absl::Cleanup release = [&] {
    const std::lock_guard lock(mutex_);
    reserved_bytes_ -= *reserved;
  };
  try {
    absl::StatusOr<Snapshot> snapshot = Build(collection, *plan);
    if (!snapshot.ok()) return snapshot.status();
    std::move(abandon).Cancel();
    return store_.Publish(collection, *std::move(snapshot)).current;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("{} does not fit: memory ran out while it was loaded", collection));
  }
}

absl::StatusOr<Snapshot> Publisher::Build(const std::string& collection,
                                          const data::DatasetPlan& plan) {
  absl::StatusOr<data::Dataset> loaded = data::LoadDataset(
      plan, options_.limits,
      [&](double fraction) { store_.SetProgress(collection, kDatasetRead * fraction); });
  if (!loaded.ok()) return loaded.status();
  const auto dataset = std::make_shared<const data::Dataset>(*std::move(loaded));

  Snapshot snapshot;
  snapshot.dataset = dataset;
  snapshot.text_index = filter::TextIndex::Build(dataset->payload, dataset->lookup_fields);
  auto filters = filter::Filters::Create(*dataset, collection);
  if (!filters.ok()) return filters.status();
  snapshot.filters = *std::move(filters);
  snapshot.index_plan =
      backend_.Plan({dataset->vectors.row_count(), dataset->vectors.dim(), dataset->metric});
  const SegmentRows rows{dataset->vectors.view(), dataset, dataset->metric, 0};
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> segment = backend_.MakeResident(rows);
  if (!segment.ok()) return segment.status();
  store_.SetProgress(collection, kIndexBuilt);
  if (absl::Status status = VerifyIndex(**segment, rows.rows, rows.first_row); !status.ok()) {
    return status;
  }
  snapshot.segments.push_back(*std::move(segment));
  snapshot.loaded_at = clock_.WallNow();
  return snapshot;
}

absl::StatusOr<std::uint64_t> Publisher::Reserve(const std::string& collection,
                                                 const data::DatasetPlan& plan) {
  const std::uint64_t index_bytes =
      backend_.Plan({plan.row_count, plan.dim, plan.files.metric}).host_bytes;
  const std::uint64_t needed = plan.total_bytes() + index_bytes;
  // Drop page leases first: the new generation needs the memory.
  store_.EndLeases();
  store_.AwaitReclaimed();

  // Read under the lock: else a load that ends meanwhile counts as neither reserved nor resident.
  const std::lock_guard lock(mutex_);
  absl::StatusOr<Budget> budget = ReadBudget();
  if (!budget.ok()) return budget.status();
  const std::uint64_t free = budget->bytes - std::min(budget->bytes, reserved_bytes_);
  if (needed > free) {
    const std::string promised = reserved_bytes_ == 0
                                     ? ""
                                     : fmt::format(", less {} promised to a load under way",
                                                   base::BytesText(reserved_bytes_));
    return absl::ResourceExhaustedError(fmt::format(
        "{} does not fit: it needs {} (vectors {}, payload {}, users {}, index {}); {} may be "
        "taken: {}{}",
        collection, base::BytesText(needed), base::BytesText(plan.vector_bytes),
        base::BytesText(plan.payload_bytes + plan.filter_bytes), base::BytesText(plan.user_bytes),
        base::BytesText(index_bytes), base::BytesText(free), budget->reason, promised));
  }
  reserved_bytes_ += needed;
  return needed;
}

absl::StatusOr<Publisher::Budget> Publisher::ReadBudget() const {
  if (options_.memory_bytes_max == 0) {
    absl::StatusOr<HostMemory> memory = options_.read_memory();
    if (!memory.ok()) {
      return absl::UnavailableError(
          fmt::format("cannot tell how much memory is free ({}); set collections.memory_bytes_max",
                      std::string(memory.status().message())));
    }
    return Budget{memory->available_bytes - memory->available_bytes / 10,
                  fmt::format("nine tenths of the {} {}", base::BytesText(memory->available_bytes),
                              memory->origin)};
  }
  std::uint64_t resident = 0;
  for (const CollectionStatus& status : store_.List()) {
    if (status.snapshot == nullptr) continue;
    // An index that is not built yet counts as planned.
    const ResidentBytes bytes = BytesOf(*status.snapshot);
    resident +=
        bytes.host() - bytes.index + std::max(bytes.index, status.snapshot->index_plan.host_bytes);
  }
  return Budget{options_.memory_bytes_max - std::min(options_.memory_bytes_max, resident),
                fmt::format("of the {} allowed for all collections {} is in use",
                            base::BytesText(options_.memory_bytes_max), base::BytesText(resident))};
}

}  // namespace simile::engine
