#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <fmt/format.h>

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
};

inline QuerySpec SpecOf(const ResolvedQuery& query) {
  return {query.k, query.mask.get(), query.excluded(), query.score_threshold};
}

// A batch of large k can ask for much; the server outlives it.
inline absl::Status NoMemoryFor(std::string_view what) {
  return base::Error(base::ErrorReason::kOutOfMemory,
                     fmt::format("no memory for the {}; ask for fewer hits at a time", what));
}

}  // namespace simile::engine
