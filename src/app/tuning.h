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

// The numbers that the CPU engine runs with, and where each comes from.
struct TuningInForce {
  backend::cpu::Int8Tuning tuning;
  // Of TuningValues() in turn: "default", "measured 2026-11-21 on Intel(R) Xeon(R) Processor, 2
  // threads, amx+avx512vnni", "not measured yet; the first serve measures".
  std::vector<std::string> origins;
  bool measured = false;  // just now
  bool complete = true;   // else the machine was too busy, and the next start measures again
  Clock::Duration took{};
  // Why the cache could not be read, or what was measured is not kept. Never a reason not to serve.
  absl::Status cache;
};

// Without measuring: what the next serve of this configuration begins with, for `config --print`.
TuningInForce KnownTuning(const Config& config);

// Reads the cache; where it has nothing for this machine, or not everything, measures and writes
// the cache. Measures nothing when the configuration has no use for it.
//   measure  backend::cpu::Calibrate; tests bring their own
using Measure =
    std::function<backend::cpu::TuningFindings(const backend::cpu::Int8Options& options)>;
TuningInForce EnsureTuning(const Config& config, const Measure& measure, const Clock& clock);

}  // namespace simile::app
