#pragma once

#include <filesystem>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"

namespace simile::app {

// What calibration's findings hold for, beside its version.
struct TuningKey {
  std::string cpu;  // "Intel(R) Xeon(R) Processor"
  unsigned threads = 1;
  std::string kernels;  // "amx+avx512vnni"
};
TuningKey KeyOf(const backend::cpu::Int8Options& options);

struct MeasuredTuning {
  TuningKey key;
  std::string date;  // "2026-11-21"
  backend::cpu::TuningFindings findings;
};

// The file that keeps calibrations from one start to the next: JSON, one entry a key, so that
// machines and releases that share a home share it.

// Errors: kNotFound when there is no file or nothing sound in it for this key; kInvalidArgument
//         when it is something else than such a file; kPermissionDenied when it cannot be read.
absl::StatusOr<MeasuredTuning> ReadTuningCache(const std::filesystem::path& file,
                                               const TuningKey& key);

// Puts an entry in place of the one with its key, if any. Others stay, the oldest give way beyond
// 64. Makes the file and its folders; whoever reads meanwhile finds the old file or the new one. Of
// two that write at the same time one entry may be lost, which costs a measurement.
// Errors: kInvalidArgument when the file is something else, which is left as it is; kUnavailable
//         when it cannot be written.
absl::Status WriteTuningCache(const std::filesystem::path& file, const MeasuredTuning& measured);

}  // namespace simile::app
