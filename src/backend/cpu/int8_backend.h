#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/int8_tuning.h"
#include "backend/cpu/packed_codes.h"
#include "certificate/canonical_score.h"
#include "simile/backend.h"

namespace simile::backend::cpu {

struct Int8Options {
  // Kernels for batches from large_batch_min on and below it.
  const Int8Kernel* large = nullptr;
  const Int8Kernel* small = nullptr;
  const certificate::CanonicalKernel* canonical = nullptr;
  unsigned threads = 1;  // workers of its pool, the calling thread included
  Int8Tuning tuning;
  // An index whose codes take more than this is built in the background: MakeResident returns at
  // once, and the index answers by the plain scan until it is built. Estimated; engine_bench builds
  // 25 MB in 0.08 s (docs/benchmarks/cpu.md).
  std::size_t foreground_bytes_max = 32U << 20;
  // A pass over codes of so many bytes for one query is left to the calling thread, and one for
  // more queries over fewer (IsSmallPass). Waking another thread and waiting for it pays from about
  // 90 us on (docs/design/cpu-engine.md).
  std::size_t small_pass_bytes = 4U << 20;
  // The candidates of a pass of several queries are scored row by row instead of query by query
  // (BatchFinish) where it wants so many hits for each row of the segment
  // (docs/design/cpu-engine.md).
  std::size_t row_order_hits_per_row = 1;
  // So many candidates at a time: those of 1,000 queries of k 1,000. Each takes 28 bytes, which are
  // kept for the next batch.
  std::size_t candidates_together = 2U << 20;
};

// The kernels to use on this processor: the fastest it can run, or the forced one.
//   isa  empty, or the name of an instruction set. Kernels are null when it cannot run here.
Int8Options OptionsFor(std::string_view isa);

// The codes that the engine keeps of a segment; nullopt for a small one, which it scans plainly.
std::optional<PackedShape> PackedShapeFor(const Int8Options& options, std::size_t row_count,
                                          std::size_t dim);

// Backend::Plan of the engine, without making it.
ResidentPlan PlanInt8(const Int8Options& options, const SegmentShape& shape);

// The certified engine: one pass over a byte a dimension finds candidates under a proven bound, and
// canonical fp32 scores rank them. Answers equal the plain scan's, bit for bit
// (docs/design/cpu-engine.md).
std::unique_ptr<Backend> MakeInt8Backend(const Int8Options& options);

}  // namespace simile::backend::cpu
