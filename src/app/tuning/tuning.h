#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "app/config/config.h"
#include "app/tuning/tuning_cache.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "simile/clock.h"

namespace simile::app {

// A day in UTC, as findings have it: "2026-11-21".
std::string FormatDate(std::chrono::system_clock::time_point time);

// A number of the tuning: "262,144", "never".
std::string TuningText(const backend::cpu::TuningValue& value, std::size_t number);

// The tuning that the CPU engine runs with, and the origin of each number.
struct TuningInForce {
  backend::cpu::Int8Tuning tuning;
  // In the order of TuningValues(): "default", "measured 2026-11-21 on Intel(R) Xeon(R) Processor,
  // 2 threads, amx+avx512vnni", "tuned 2026-11-23 for films on ...", "not measured yet; the first
  // serve measures".
  std::vector<std::string> origins;
  // The number of threads that search; 0 where the configuration cannot be used. Its origin:
  // "backend.threads", "every core this process may use", "tuned ...".
  unsigned threads = 0;
  std::string threads_origin;
  bool measured = false;  // by this call
  bool complete = true;   // false: the machine was too busy, and the next start measures again
  Clock::Duration took{};
  // Why the cache could not be read or written. The server starts all the same.
  absl::Status cache;

  // The options with their tuning and threads replaced by those in force.
  backend::RegistryOptions Over(backend::RegistryOptions options) const;
};

// Returns the tuning that the next serve would start with, without measuring: for `config --print`.
TuningInForce KnownTuning(const Config& config);

// The tuning that follows from the measurements on this machine.
TuningInForce ResolveTuning(const Config& config, const MeasuredTuning& measured);

// Reads the findings for this machine from the cache, and measures the missing ones. Writes
// nothing: for `tune`.
// Errors: kFailedPrecondition if the configuration does not use the tuning; those of
// MakeCpuOptions.
//   measure  as for EnsureTuning
using Measure =
    std::function<backend::cpu::TuningFindings(const backend::cpu::Int8Options& options)>;
absl::StatusOr<MeasuredTuning> MeasureTuning(const Config& config, const Measure& measure,
                                             const Clock& clock);

// Reads the cache; if numbers for this machine are missing, measures and writes the cache. Measures
// nothing if the configuration does not use the tuning.
//   measure  backend::cpu::Calibrate; tests pass their own
TuningInForce EnsureTuning(const Config& config, const Measure& measure, const Clock& clock);

}  // namespace simile::app
