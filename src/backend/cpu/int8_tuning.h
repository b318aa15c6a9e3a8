#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace simile::backend::cpu {

// Where one road through the certified engine becomes faster than another. It differs from one
// processor to the next; the numbers here serve until somebody has measured (calibration.h). No
// answer depends on them.
struct Int8Tuning {
  std::size_t block_bytes = 192U << 10;  // of codes that stay in the second-level cache
  std::size_t large_batch_min = 5;  // queries from which the kernel for large batches is the faster
  std::size_t gather_share = 16;    // gather for a mask that at most one row in this many passes,
                                    // if that saves the pass
  std::size_t scan_rows_max = 1'024;  // segments up to this size are scanned plainly

  friend bool operator==(const Int8Tuning&, const Int8Tuning&) = default;
};

// What a measurement found out. Nothing where there was nothing to choose or its times disagreed.
struct TuningFindings {
  std::optional<std::size_t> block_bytes;
  std::optional<std::size_t> large_batch_min;
  std::optional<std::size_t> gather_share;
  std::optional<std::size_t> scan_rows_max;

  friend bool operator==(const TuningFindings&, const TuningFindings&) = default;
};

// One number of the tuning: how files and people name it, and what it may be.
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
