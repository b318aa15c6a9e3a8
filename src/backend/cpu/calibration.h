#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "backend/cpu/tuning_decisions.h"

namespace simile::backend::cpu {

// Of the measurements below and of what is made of them: findings kept on disk hold for this
// number only. Goes up with every change that would find something else.
inline constexpr unsigned kCalibrationVersion = 1;

// What calibration asks of a machine. Each answer is a number of pairs, fewer or none when time
// runs out; tests answer themselves.
class CalibrationProbe {
 public:
  virtual ~CalibrationProbe() = default;

  // A pass of so many queries with the kernel for large batches, and with the other one.
  virtual std::vector<TimePair> LargeAndSmall(std::size_t batch) = 0;
  // A filtered row gathered and scanned, and a row of a pass under the same filter.
  virtual std::vector<TimePair> GatherAndPass(std::size_t batch) = 0;
  // One query to so many rows: the plain scan, and the pass.
  virtual std::vector<TimePair> ScanAndPass(std::size_t row_count) = 0;
};

// What to ask, and what follows from the answers. No clock.
//   kernels_differ      whether there are two kernels to choose from
//   second_level_bytes  of the cache; nothing when it is not known
TuningFindings FindTuning(CalibrationProbe& probe, bool kernels_differ,
                          std::optional<std::size_t> second_level_bytes);

// Measures on this machine with the kernels and threads of these options, on synthetic vectors.
// Never fails: without memory or time there are fewer findings.
// Cost: at most about 0.4 s and 64 MB.
TuningFindings Calibrate(const Int8Options& options);

}  // namespace simile::backend::cpu
