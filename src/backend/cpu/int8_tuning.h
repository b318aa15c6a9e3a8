#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace simile::backend::cpu {

// Where one strategy of the certified engine becomes faster than another. It differs between
// processors: calibration.h measures it, and these defaults, which are estimated, apply until then.
// No answer depends on them.
struct Int8Tuning {
  std::size_t block_bytes = 192U << 10;  // codes of a block, which stays in the second-level cache
  std::size_t large_batch_min = 5;  // queries from which the kernel for large batches is the faster
  std::size_t gather_share = 16;    // gather for a mask that at most one row in this many passes,
                                    // if that saves the pass
  std::size_t scan_rows_max = 1'024;  // segments up to this size are scanned plainly

  friend bool operator==(const Int8Tuning&, const Int8Tuning&) = default;
};

// What calibration found; nullopt where there was no choice or the times disagreed.
struct TuningFindings {
  std::optional<std::size_t> block_bytes;
  std::optional<std::size_t> large_batch_min;
  std::optional<std::size_t> gather_share;
  std::optional<std::size_t> scan_rows_max;

  friend bool operator==(const TuningFindings&, const TuningFindings&) = default;
};

// One number of the tuning: its name in files and messages, and its range.
struct TuningValue {
  const char* name;  // "block_bytes"
  const char* unit;
  const char* help;  // one sentence
  std::size_t min;
  std::size_t max;
  std::size_t Int8Tuning::*value;
  std::optional<std::size_t> TuningFindings::*found;
};

// All of them, in the order of Int8Tuning.
std::span<const TuningValue> TuningValues();

// The defaults with the findings over them.
Int8Tuning TuningOf(const TuningFindings& findings);

}  // namespace simile::backend::cpu
