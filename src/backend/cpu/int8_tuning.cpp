#include "backend/cpu/int8_tuning.h"

#include <array>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

std::span<const TuningValue> TuningValues() {
  static constexpr std::array<TuningValue, 4> kValues{{
      {"block_bytes", "bytes",
       "Codes of a block, which stays in the second-level cache for all queries of a batch.",
       128U << 10, 1U << 20, &Int8Tuning::block_bytes, &TuningFindings::block_bytes},
      // Up to four queries the vector kernels read each row once, as AMX does, and faster.
      {"large_batch_min", "queries", "Batches from this size on use the kernel for large batches.",
       kQueriesTogether + 1, 32, &Int8Tuning::large_batch_min, &TuningFindings::large_batch_min},
      {"gather_share", "rows for one",
       "Rows that pass a filter are gathered and scanned when at most one in this many does and "
       "that saves the pass.",
       4, 256, &Int8Tuning::gather_share, &TuningFindings::gather_share},
      {"scan_rows_max", "rows", "Collections up to this size are scanned plainly.", 256, 16'384,
       &Int8Tuning::scan_rows_max, &TuningFindings::scan_rows_max},
  }};
  return kValues;
}

Int8Tuning TuningOf(const TuningFindings& findings) {
  Int8Tuning tuning;
  for (const TuningValue& value : TuningValues()) {
    tuning.*value.value = (findings.*value.found).value_or(tuning.*value.value);
  }
  return tuning;
}

}  // namespace simile::backend::cpu
