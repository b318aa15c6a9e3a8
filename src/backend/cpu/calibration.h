#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "backend/cpu/tuning_decisions.h"

namespace simile::backend::cpu {

// The version of the measurements below and of the decisions made from them. Findings on disk are
// used for this number only; raise it with every change that would find something else.
inline constexpr unsigned kCalibrationVersion = 2;

// The measurements that calibration needs. Each returns time pairs, fewer or none when time runs
// out. Tests implement it without a clock.
class CalibrationProbe {
 public:
  virtual ~CalibrationProbe() = default;

  // A pass of `batch` queries with the kernel for large batches, and with the small one.
  virtual std::vector<TimePair> LargeAndSmall(std::size_t batch) = 0;
  // Per row: gathering and scanning a filtered row, and a pass under the same filter.
  virtual std::vector<TimePair> GatherAndPass(std::size_t batch) = 0;
  // One query against this many rows: the plain scan, and the pass.
  virtual std::vector<TimePair> ScanAndPass(std::size_t row_count) = 0;
};

// Which measurements to make, and the tuning that follows from them. Has no clock of its own.
//   kernels_differ      whether there are two kernels to choose from
//   second_level_bytes  size of the second-level cache; nullopt when it is not known
TuningFindings FindTuning(CalibrationProbe& probe, bool kernels_differ,
                          std::optional<std::size_t> second_level_bytes);

// Measures on this machine with the kernels and threads of these options, on synthetic vectors.
// Never fails: without memory or time there are fewer findings.
// Cost: at most about 0.4 s and 64 MB.
TuningFindings Calibrate(const Int8Options& options);

}  // namespace simile::backend::cpu
