#pragma once

#include <absl/status/status.h>

#include "base/error_detail.h"
#include "engine/search/resolved_query.h"
#include "engine/search/search_batch_builder.h"
#include "engine/search/segment_search.h"
#include "simile/hits.h"
#include "simile/query.h"

namespace simile::engine {

// What the thread that leads makes searches with, kept from one to the next, so that a warm pass of
// plain queries allocates only the answers.
struct SearchWorkspace {
  SegmentSearch search;
  SearchBatchBuilder builder;
  SearchResult result;  // of the latest search

  // While nothing is searched.
  void FreeBuffers() {
    constexpr std::size_t kResultBytesKept = 1U << 20;
    if (result.buffer_bytes() > kResultBytesKept) result = SearchResult();
  }
};

inline QuerySpec SpecOf(const ResolvedQuery& query) {
  return {query.k, query.mask.get(), query.excluded(), query.score_threshold};
}

// A failed allocation ends the call, not the process.
inline absl::Status NoMemoryForAnswer() {
  return base::Error(base::ErrorReason::kOutOfMemory,
                     "no memory for the answer; ask for fewer hits at a time");
}
inline absl::Status NoMemoryForBatch() {
  return base::Error(base::ErrorReason::kOutOfMemory,
                     "no memory for the batch; ask for fewer hits at a time");
}

}  // namespace simile::engine
