#include "cli/snapshot_flag.h"

#include <fmt/format.h>

#include "cli/errors.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kFewestDigits = 8;

}  // namespace

absl::StatusOr<std::string> ExpectedSnapshotId(const std::optional<std::string>& flag,
                                               const v1::Collection& collection) {
  if (!flag) return std::string();
  if (flag->size() >= kIdDigits) return *flag;
  if (flag->size() < kFewestDigits) {
    return absl::InvalidArgumentError(
        fmt::format("--expect-snapshot {}: give the id's first {} digits or all {}", *flag,
                    kFewestDigits, kIdDigits));
  }
  for (const std::string& id : {collection.snapshot_id(), collection.rollback_snapshot_id()}) {
    if (id.starts_with(*flag)) return id;
  }
  return WithServersReason(
      absl::FailedPreconditionError(fmt::format("{} serves snapshot {}, not {}", collection.name(),
                                                ShortSnapshotId(collection.snapshot_id()), *flag)),
      base::ErrorReason::kSnapshotMismatch);
}

}  // namespace simile::cli
