#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace simile::backend::cpu {

// The sizes at which one strategy of the certified engine becomes faster than another. They differ
// between processors; calibration.h measures most of them at the first start. The defaults are
// estimates for the sizes that are not measured. No answer depends on them.
struct Int8Tuning {
  std::size_t block_bytes = 192U << 10;  // codes of a block, which stays in the second-level cache
  std::size_t large_batch_min = 5;    // queries from which the kernel for large batches is faster
  std::size_t gather_share = 16;      // gather for a mask that at most one row in this many passes,
                                      // if that saves the pass
  std::size_t scan_rows_max = 1'024;  // segments up to this size are scanned plainly
  // An index whose codes take at least this much also keeps half a byte a dimension. The smallest
  // batches, whose limit is memory, read that instead, if the small kernel can.
  std::size_t int4_from_code_bytes = 64U << 20;
  // From this many queries a thread on, threads divide the queries instead of the rows. Each gate
  // then rises with all rows instead of a thread's share, so fewer hits pass. But every thread
  // reads all rows; with fewer queries that costs more than it saves (docs/design/cpu-engine.md has
  // the figures).
  std::size_t queries_of_thread_min = 256;

  friend bool operator==(const Int8Tuning&, const Int8Tuning&) = default;
};

// The measured sizes. nullopt when a size was not measured, when there was no choice, or when the
// times disagreed.
struct TuningFindings {
  std::optional<std::size_t> block_bytes;
  std::optional<std::size_t> large_batch_min;
  std::optional<std::size_t> gather_share;
  std::optional<std::size_t> scan_rows_max;
  std::optional<std::size_t> int4_from_code_bytes;
  std::optional<std::size_t> queries_of_thread_min;

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
  bool max_is_never;  // the maximum means that the strategy is never used
};

// All numbers, in the order of Int8Tuning.
std::span<const TuningValue> TuningValues();

// The findings, with defaults for missing ones.
Int8Tuning MakeTuning(const TuningFindings& findings);

}  // namespace simile::backend::cpu
