#pragma once

#include <cstddef>

#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "cli/plan/capacity.h"
#include "simile/clock.h"

namespace simile::cli {

// Measures for about a second what bounds every search of the CPU engine on this machine: how fast
// all threads together read again and again what fits into which cache, or into none, and what more
// rows cost the engine in a large batch.
//   dim  of the vectors to multiply
// Errors: kResourceExhausted without 300 MiB of memory.
absl::StatusOr<SpeedLimits> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                             std::size_t dim, const Clock& clock);

}  // namespace simile::cli
