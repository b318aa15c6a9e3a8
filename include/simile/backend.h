#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/segment.h"
#include "simile/served_by.h"

namespace simile {

// The size of a segment before it exists.
struct SegmentShape {
  std::size_t row_count = 0;
  std::size_t dim = 0;
  Metric metric = Metric::kCosine;
};

// The bytes that a backend holds on its device for one purpose.
struct DeviceMemory {
  std::string kind;  // "rows-fp16", "rows-fp32", "filters", "workspace": few values, for a label
  std::uint64_t bytes = 0;
  std::uint64_t peak_bytes = 0;  // the most since start
};

// A card's memory, used by all processes together.
struct CardMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// Makes segments that can be searched. Built once at start by the registry; outlives every segment
// it made. All methods may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendInfo& info() const = 0;

  // Why the backend is slower than it could be: a library is missing or does not work. For the
  // first line of output and `simile doctor`. Empty when nothing limits it; never changes.
  virtual std::string limitation() const { return {}; }

  // The backend that answers instead because the device is lost; null while this one answers.
  virtual FallbackBackend fallback() const { return nullptr; }

  // The memory that the backend holds on its device now, in the same order each time. Empty for a
  // backend on the host. Counted on the host, so a lost device is never called. Cost O(kinds).
  virtual std::vector<DeviceMemory> device_memory() const { return {}; }

  // The card's memory, as the driver reported it when the backend last allocated or freed device
  // memory. Nothing for a backend on the host. A lost device is never called.
  virtual std::optional<CardMemory> card_memory() const { return std::nullopt; }

  // The most bytes that MakeResident will allocate for a segment of this shape. Pure; cost O(1).
  virtual ResidentPlan Plan(const SegmentShape& shape) const = 0;

  // Builds an index over the rows.
  // Errors: kResourceExhausted when the rows do not fit, with the bytes needed and free;
  // kUnavailable after a device fault.
  virtual absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) = 0;
};

}  // namespace simile
