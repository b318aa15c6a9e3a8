#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "simile/segment.h"

namespace simile {

// What a backend calls itself on receipts, in the first lines of `serve` and in metrics.
struct BackendInfo {
  std::string name;    // "cpu", "gpu"
  std::string engine;  // "scan-avx512", "scan-avx2", "scan-portable"
  std::string device;  // "AMD EPYC 9B14, 2 threads"
};

// The size of a segment before it exists.
struct SegmentShape {
  std::size_t row_count = 0;
  std::size_t dim = 0;
  Metric metric = Metric::kCosine;
};

// What making a segment resident will take, beyond the fp32 rows that the snapshot holds anyway.
struct ResidentPlan {
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// Something that can hold segments and search them. Built once at start by the registry; outlives
// every segment it made. All methods may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendInfo& info() const = 0;

  // What MakeResident will take for a segment of this shape. Pure; cost O(1).
  virtual ResidentPlan Plan(const SegmentShape& shape) const = 0;

  // Builds an index over the rows.
  // Errors: kResourceExhausted when they do not fit, with the bytes needed and free.
  virtual absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) = 0;
};

}  // namespace simile
