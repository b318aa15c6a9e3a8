#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config/config.h"
#include "app/tuning/better_tuning.h"
#include "app/tuning/gpu_rates.h"
#include "app/tuning/tuning.h"
#include "app/tuning/tuning_cache.h"
#include "simile/clock.h"

namespace simile::app {

struct TuneOptions {
  Clock::Duration duration = std::chrono::seconds(60);  // of the measurements, after the load
  std::uint32_t k = 10;
  std::uint32_t batch_max = 1'024;  // queries at once
  // The tuning file to write; empty: nothing is written.
  std::filesystem::path output;
};

struct TuneReport {
  TuningKey key;
  std::vector<TunedShape> collections;
  BetterTuning tuning;
  TuningInForce in_force;  // from the next start on
  GpuRates gpu;
  std::size_t answers_compared = 0;  // 0: the number of threads is the same
  bool written = false;              // false: without an output, or one that held the same
};

// Calibrates the CPU engine unless the file holds its calibration. Measures the GPU that serve
// would use, if there is one. Times the CPU engine on the configured collections with every quarter
// of the usable threads (better_tuning.h), and compares answers where another number is better.
// Writes the file last, and only where its content changes: the GPU's entries in one step, then the
// CPU's.
//   progress  called from this thread with the share of the time and the current step
// Errors: those of the load with the folder; kFailedPrecondition if the configuration does not use
//         the tuning; kResourceExhausted if the collections and their indexes do not fit;
//         those of WriteTuningCache: all but a full disk are found before the measurements;
//         kInternal if an answer differs.
absl::StatusOr<TuneReport> TuneCollections(const Config& config, const TuneOptions& options,
                                           const Clock& clock, const TuneProgress& progress);

// The findings to keep after this number of threads was chosen on these collections. Findings that
// an earlier version tuned stay.
//   collections  names
MeasuredTuning WithThreads(MeasuredTuning measured, unsigned threads,
                           const std::vector<std::string>& collections, const std::string& date);

}  // namespace simile::app
