#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "app/better_tuning.h"
#include "app/config.h"
#include "app/gpu_rates.h"
#include "app/tuning_cache.h"
#include "simile/clock.h"

namespace simile::app {

struct TuneOptions {
  Clock::Duration duration = std::chrono::seconds(60);  // of the measurements, after the load
  std::uint32_t k = 10;
  std::uint32_t batch_max = 1'024;  // queries at once
  // What is tuned for this machine goes here; empty: nothing is written.
  std::filesystem::path output;
};

struct TuneReport {
  TuningKey key;
  std::vector<TunedShape> collections;
  BetterTuning tuning;
  GpuRates gpu;
  std::uint64_t index_bytes_before = 0;
  std::uint64_t index_bytes_after = 0;
  std::size_t answers_compared = 0;  // 0: nothing was changed
  bool written = false;              // false: without an output, or one that held the same
};

// Measures the GPU that serve would use, if there is one, then the CPU engine on the configured
// collections (better_tuning.h). Compares answers with both settings of the CPU engine. Writes the
// file last, and only where its content changes: the GPU's entries in one step, then the CPU's.
//   progress  called from this thread with the share of the time and what is being done
// Errors: those of the load with the folder; kFailedPrecondition if the configuration does not use
//         the tuning; kResourceExhausted if the collections and their indexes do not fit;
//         those of WriteTuningCache, of which all but a full disk come before the measurements;
//         kInternal if an answer differs.
absl::StatusOr<TuneReport> TuneCollections(const Config& config, const TuneOptions& options,
                                           const Clock& clock, const TuneProgress& progress);

// What to keep: the calibration, and over it what was tuned before or now.
//   collections  names
MeasuredTuning WithTuned(MeasuredTuning measured, const BetterTuning& tuning,
                         const std::vector<std::string>& collections, const std::string& date);

}  // namespace simile::app
