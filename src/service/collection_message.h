#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "engine/snapshots/change_progress.h"
#include "filter/field_summary.h"
#include "service/served_collections.h"
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

// A payload field with its type in filters.
void FillField(const filter::Field& field, v1::PayloadField& message);
// The same with a summary of its values. Errors: work's.
absl::Status FillDescription(const filter::Field& field, std::size_t values_max,
                             base::LongWork& work, v1::FieldDescription& message);

// What answers now, and the memory on the backend's device.
void FillBackend(const ServingBackend& backend, v1::BackendStatus& message);

void FillProgress(const engine::ChangeProgress& progress, v1::ChangeProgress& message);

// A collection's state and, when it has a snapshot, what that holds and where it came from.
void FillCollection(const PermittedStatus& status, const ServingBackend& backend,
                    v1::Collection& message);

}  // namespace simile::service
