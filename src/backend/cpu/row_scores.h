#pragma once

#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/cpu/thread_pool.h"
#include "certificate/canonical_score.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Forms the canonical scores of listed rows with several vectors (SegmentIndex::Score). Keeps its
// buffers for the next call; used by one thread at a time.
class RowScores {
 public:
  explicit RowScores(const certificate::CanonicalKernel& kernel) : kernel_(kernel) {}

  // As SegmentIndex::Score; never a fallback.
  absl::StatusOr<FallbackBackend> Run(ThreadPool& pool, const SegmentRows& rows, MatrixView queries,
                                      std::span<const Row> wanted, std::span<float> scores);

 private:
  void Score(ThreadPool& pool, const SegmentRows& rows, MatrixView queries,
             std::span<const Row> wanted, std::span<float> scores);

  const certificate::CanonicalKernel& kernel_;
  std::vector<std::vector<float>> blocks_;  // [threads], scores of one run of rows
};

}  // namespace simile::backend::cpu
