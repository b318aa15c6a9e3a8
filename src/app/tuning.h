#pragma once

#include <functional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "app/config.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "simile/clock.h"

namespace simile::app {

// The tuning that the CPU engine runs with, and the origin of each number.
struct TuningInForce {
  backend::cpu::Int8Tuning tuning;
  // In the order of TuningValues(): "default", "measured 2026-11-21 on Intel(R) Xeon(R) Processor,
  // 2 threads, amx+avx512vnni", "not measured yet; the first serve measures".
  std::vector<std::string> origins;
  bool measured = false;  // by this call
  bool complete = true;   // false: the machine was too busy, and the next start measures again
  Clock::Duration took{};
  // Why the cache could not be read or written. The server starts all the same.
  absl::Status cache;
};

// Returns the tuning that the next serve would start with, without measuring: for `config --print`.
TuningInForce KnownTuning(const Config& config);

// Reads the cache; if numbers for this machine are missing, measures and writes the cache. Measures
// nothing if the configuration does not use the tuning.
//   measure  backend::cpu::Calibrate; tests pass their own
using Measure =
    std::function<backend::cpu::TuningFindings(const backend::cpu::Int8Options& options)>;
TuningInForce EnsureTuning(const Config& config, const Measure& measure, const Clock& clock);

}  // namespace simile::app
