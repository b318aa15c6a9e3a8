#pragma once

#include <cstddef>

#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "simile/clock.h"

namespace simile::cli {

// What bounds every search of the CPU engine on this machine.
struct HostSpeed {
  double bytes_per_s = 0;     // that all threads together read from memory
  double products_per_s = 0;  // multiply-adds of a large batch; 0: not known
};

// Measures for about a second: how fast memory larger than the caches is read, and what more rows
// cost the engine in a large batch.
//   dim  of the vectors to multiply
// Errors: kResourceExhausted without 300 MiB of memory.
absl::StatusOr<HostSpeed> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                           std::size_t dim, const Clock& clock);

}  // namespace simile::cli
