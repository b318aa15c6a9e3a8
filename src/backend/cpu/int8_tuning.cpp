#include "backend/cpu/int8_tuning.h"

#include <array>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {
namespace {

// The largest batch that an operator may allow (limits.batch_queries_max).
constexpr std::size_t kNeverReached = 65'536;

}  // namespace

std::span<const TuningValue> TuningValues() {
  static constexpr std::array<TuningValue, 6> kValues{{
      {"block_bytes", "bytes",
       "Codes of a block, which stays in the second-level cache for all queries of a batch.",
       128U << 10, 1U << 20, &Int8Tuning::block_bytes, &TuningFindings::block_bytes, false},
      // With up to four queries the vector kernels read each row once, as AMX does, but faster.
      {"large_batch_min", "queries", "Batches from this size on use the kernel for large batches.",
       kQueriesTogether + 1, kNeverReached, &Int8Tuning::large_batch_min,
       &TuningFindings::large_batch_min, true},
      {"gather_share", "rows for one",
       "Rows that pass a filter are gathered and scanned when at most one row in this many passes "
       "and that saves the pass.",
       4, 256, &Int8Tuning::gather_share, &TuningFindings::gather_share, false},
      {"scan_rows_max", "rows", "Collections up to this size are scanned plainly.", 256, 16'384,
       &Int8Tuning::scan_rows_max, &TuningFindings::scan_rows_max, false},
      {"int4_from_code_bytes", "bytes",
       "Collections whose codes take this much also keep int4 codes, for up to four queries.",
       1U << 20, std::size_t{1} << 40, &Int8Tuning::int4_from_code_bytes,
       &TuningFindings::int4_from_code_bytes, true},
      {"queries_of_thread_min", "queries",
       "From this many queries a thread on, threads divide the queries instead of the rows.", 16,
       kNeverReached, &Int8Tuning::queries_of_thread_min, &TuningFindings::queries_of_thread_min,
       true},
  }};
  return kValues;
}

Int8Tuning MakeTuning(const TuningFindings& findings) {
  Int8Tuning tuning;
  for (const TuningValue& value : TuningValues()) {
    tuning.*value.value = (findings.*value.found).value_or(tuning.*value.value);
  }
  return tuning;
}

}  // namespace simile::backend::cpu
