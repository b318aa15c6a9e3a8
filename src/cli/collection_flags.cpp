#include "cli/collection_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/errors.h"
#include "cli/payload_text.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kFewestDigits = 8;

}  // namespace

void SelectFields(const std::vector<std::string>& fields, const v1::Collection& collection,
                  v1::PayloadSelector& selector) {
  const bool has_id = std::ranges::any_of(
      collection.fields(), [](const v1::PayloadField& field) { return field.name() == kIdField; });
  for (const std::string& field : fields) {
    if (field != kIdField || has_id) selector.add_fields(field);
  }
  if (!fields.empty() && selector.fields().empty()) {
    selector.set_selection(v1::PayloadSelector::SELECTION_NONE);
  }
}

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

void AddItemFlags(Command& command, ItemFlags& flags, const char* fields_help) {
  command.Collection(flags.collection, "The collection (default: the server's only one)")
      .List("--fields", flags.fields, "FIELD", fields_help)
      .Switch("--with-rows", flags.with_rows,
              "Return each item's position in the loaded files, from 0")
      .Text("--required-filter", flags.required_filter, "TEXT",
            "Items that do not pass are treated as not in the collection")
      .Text("--expect-snapshot", flags.expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags.client, fmt::format("default {:.0f}", kItemTimeoutSeconds));
}

}  // namespace simile::cli
