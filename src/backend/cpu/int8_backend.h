#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/int8_tuning.h"
#include "certificate/canonical_score.h"
#include "simile/backend.h"

namespace simile::backend::cpu {

struct Int8Options {
  // Kernels for batches from large_batch_min on and below it. Both read the same codes.
  // REQUIRES: large->code_max == small->code_max
  const Int8Kernel* large = nullptr;
  const Int8Kernel* small = nullptr;
  const certificate::CanonicalKernel* canonical = nullptr;
  unsigned threads = 1;  // workers of its pool, the calling thread included
  Int8Tuning tuning;
  // An index whose codes take this much also keeps half a byte a dimension, which the smallest
  // batches read instead, provided that the small kernel can: memory is their limit.
  std::size_t nibbles_from_code_bytes = 64U << 20;
  // Where each thread gets so many queries of a batch, threads divide the queries and not the rows:
  // a gate then rises with all rows and not with a thread's share of them, and fewer hits come
  // through. Every thread reads all rows, so that with fewer queries memory would be the limit.
  std::size_t queries_of_thread_min = 256;
  // An index whose codes take more than this is built in the background: MakeResident returns at
  // once, and the index scans plainly until then.
  std::size_t foreground_bytes_max = 32U << 20;
};

// The kernels to use on this processor: the best it has, or the one that is forced.
//   isa  empty, or the name of an instruction set. Kernels are null when it cannot run here.
Int8Options OptionsFor(std::string_view isa);

// The certified engine: one pass over a byte a dimension finds candidates under a proven bound,
// canonical fp32 scores decide. Answers are those of the plain scan, bit for bit
// (docs/design/cpu-engine.md).
std::unique_ptr<Backend> MakeInt8Backend(const Int8Options& options);

}  // namespace simile::backend::cpu
