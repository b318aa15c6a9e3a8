#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"

namespace simile::app {

// The machine that the findings of a calibration are valid for. They also need the same version of
// the calibration.
struct TuningKey {
  std::string cpu;  // "Intel(R) Xeon(R) Processor"
  unsigned threads = 1;
  std::string kernels;  // "amx+avx512vnni"

  friend bool operator==(const TuningKey&, const TuningKey&) = default;
};
TuningKey MakeTuningKey(const backend::cpu::Int8Options& options);

// What `simile tune` chose on some collections: the number of threads. An earlier version also
// tuned the other numbers; its findings replace the findings of the calibration.
struct TunedFindings {
  std::string date;                      // "2026-11-23"
  std::vector<std::string> collections;  // names
  std::optional<unsigned> threads;       // that search, fewer than the key's
  backend::cpu::TuningFindings findings;

  friend bool operator==(const TunedFindings&, const TunedFindings&) = default;
};

struct MeasuredTuning {
  TuningKey key;
  std::string date;  // of the calibration: "2026-11-21"
  backend::cpu::TuningFindings findings;
  std::optional<TunedFindings> tuned;

  friend bool operator==(const MeasuredTuning&, const MeasuredTuning&) = default;
};

// The tuning file's entries of processors: one for each key, so that machines and releases with a
// common home folder can share the file. Unknown names in an entry are ignored.

// Errors: kNotFound if there is no file or no valid entry for this key; kInvalidArgument if it is
//         another kind of file; kPermissionDenied if it cannot be read.
absl::StatusOr<MeasuredTuning> ReadTuningCache(const std::filesystem::path& file,
                                               const TuningKey& key);

// OK if WriteTuningCache would write here now; else its error. Writes nothing.
absl::Status CheckTuningCacheWritable(const std::filesystem::path& file);

// Replaces the entry with this key, or adds it and drops the oldest beyond 64. Creates the file and
// its folders. Readers see the old file or the new one. If two processes write at the same time,
// one entry may be lost and is measured again.
// Errors: kInvalidArgument if it is another kind of file, which stays as it is; kUnavailable if it
//         cannot be written.
absl::Status WriteTuningCache(const std::filesystem::path& file, const MeasuredTuning& measured);

}  // namespace simile::app
