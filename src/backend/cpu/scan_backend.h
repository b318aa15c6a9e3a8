#pragma once

#include <memory>

#include "certificate/canonical_score.h"
#include "simile/backend.h"

namespace simile::backend::cpu {

// The plain exact scan: forms every passing row's canonical score and keeps the best k. Has no
// approximation and no index (it reads the snapshot's fp32 rows). Small batches are bound by memory
// bandwidth. The reference that every other engine is compared with.
//   kernel   how canonical scores are formed; see SupportedCanonicalKernels()
//   threads  threads of the pool, the calling thread included; >= 1
std::unique_ptr<Backend> MakeScanBackend(const certificate::CanonicalKernel& kernel,
                                         unsigned threads);

}  // namespace simile::backend::cpu
