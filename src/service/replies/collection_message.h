#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot_store.h"
#include "filter/filters.h"
#include "service/changes/served_collections.h"
#include "simile/backend.h"

namespace google::protobuf {
class Timestamp;
}

namespace simile::v1 {
class BackendStatus;
class ChangeProgress;
class Collection;
class FieldDescription;
class PayloadField;
}  // namespace simile::v1

namespace simile::service {

// The chosen backend (borrowed), and why it was chosen.
struct ServingBackend {
  const Backend& backend;
  std::string reason;

  // What answers now: the backend, or its fallback after its device was lost.
  ServedBy Now() const;
};

void FillTime(std::chrono::system_clock::time_point time, google::protobuf::Timestamp& message);

// Describes a payload field: its type in filters and a summary of its values in the caller's rows.
// Errors: those of `work`.
absl::Status FillDescription(const PermittedSnapshot::OwnRows& own, const filter::Field& field,
                             std::size_t values_max, base::LongWork& work,
                             v1::FieldDescription& message);

// The fields that LookupService.Lookup searches and that exist for the caller.
std::vector<std::string> FindLookupFields(const engine::Snapshot& snapshot,
                                          const filter::PayloadView& fields);

// How many rows exist for the caller.
std::uint64_t CountRows(const PermittedSnapshot::OwnRows& own);

// Sets the backend that answers now. A caller for whom everything exists also gets the reason and
// the memory on the backend's device.
void FillBackend(const ServingBackend& backend, const CallAccess& access,
                 v1::BackendStatus& message);

void FillProgress(const engine::ChangeProgress& progress, v1::ChangeProgress& message);

// Sets a collection's state and, if it has a snapshot, what the snapshot has for the caller and
// where it came from. Figures that cover other rows than the caller's are left out, and so are
// texts that may name such rows.
//   executor  runs the collection's searches, and knows how long they take
// Errors: those of `work`.
absl::Status FillCollection(const PermittedStatus& status, const ServingBackend& backend,
                            const engine::Executor& executor, base::LongWork& work,
                            v1::Collection& message);

}  // namespace simile::service
