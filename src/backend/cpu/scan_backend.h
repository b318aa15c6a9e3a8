#pragma once

#include <memory>

#include "certificate/canonical_score.h"
#include "simile/backend.h"

namespace simile::backend::cpu {

// The plain exact scan: every passing row's canonical score, best k kept. No approximation, no
// index of its own (it reads the snapshot's fp32 rows), bound by memory bandwidth for small
// batches. It is the reference that every other engine is compared with.
//   kernel   how canonical scores are formed; see SupportedCanonicalKernels()
//   threads  workers of its pool, the calling thread included; >= 1
std::unique_ptr<Backend> MakeScanBackend(const certificate::CanonicalKernel& kernel,
                                         unsigned threads);

}  // namespace simile::backend::cpu
