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
  // The kernels for batches of at least large_batch_min queries, and for smaller batches.
  const Int8Kernel* large = nullptr;
  const Int8Kernel* small = nullptr;
  const certificate::CanonicalKernel* canonical = nullptr;
  unsigned threads = 1;  // threads of the pool, the calling thread included
  Int8Tuning tuning;
  // An index whose codes take more than this is built in the background: MakeResident returns at
  // once, and the index answers by the plain scan until it is built. Estimated; engine_bench builds
  // 25 MB in 0.08 s (docs/benchmarks/cpu.md).
  std::size_t foreground_bytes_max = 32U << 20;
  // The calling thread alone runs a pass for one query over codes of up to this many bytes; with
  // more queries the limit is lower (IsSmallPass). Waking another thread and waiting for it pays
  // from about 90 us on (docs/design/cpu-engine.md).
  std::size_t small_pass_bytes = 4U << 20;
  // Candidates are scored row by row instead of query by query (BatchFinish) in a pass of several
  // queries that wants at least this many hits for each row of the segment
  // (docs/design/cpu-engine.md).
  std::size_t row_order_hits_per_row = 1;
  // The most candidates that are scored row by row at a time: the candidates of 1,000 queries of k
  // 1,000. Each takes 28 bytes, which are kept for the next batch.
  std::size_t candidates_together = 2U << 20;
};

// The kernels to use on this processor: the fastest it can run, or the forced one.
//   isa  the name of an instruction set to force, or empty. Kernels are null when the forced one
//        cannot run here.
Int8Options OptionsFor(std::string_view isa);

// The shape of the codes that the engine keeps for a segment; nullopt for a small segment, which is
// only scanned.
std::optional<PackedShape> PackedShapeFor(const Int8Options& options, std::size_t row_count,
                                          std::size_t dim);

// The engine's Backend::Plan, without making the engine.
ResidentPlan PlanInt8(const Int8Options& options, const SegmentShape& shape);

// The certified engine: one pass over a byte a dimension finds candidates under a proven bound, and
// canonical fp32 scores rank them. Answers equal the plain scan's, bit for bit
// (docs/design/cpu-engine.md).
std::unique_ptr<Backend> MakeInt8Backend(const Int8Options& options);

}  // namespace simile::backend::cpu
