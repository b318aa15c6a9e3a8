#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <absl/status/status.h>

#include "base/error_detail.h"
#include "engine/search/resolved_query.h"
#include "engine/search/segment_search.h"
#include "simile/hits.h"
#include "simile/matrix_view.h"
#include "simile/query.h"

namespace simile::engine {

// Collects searches into one batch. Its buffers are kept from batch to batch.
class SearchBatchBuilder {
 public:
  void Clear(std::size_t dim) {
    dim_ = dim;
    vectors_.clear();
    specs_.clear();
    longest_list_ = 0;
  }

  // Adds a search and copies its vector, [padded_dim]. Everything that the spec points to must
  // outlive the search. Returns the search's index in the batch and its result. Throws
  // std::bad_alloc.
  std::size_t Add(const float* vector, const QuerySpec& spec) {
    // When anything throws, the vectors of earlier searches stay at their places.
    const std::size_t padded_dim = PaddedDim(dim_);
    vectors_.resize((specs_.size() + 1) * padded_dim);
    std::copy_n(vector, padded_dim, vectors_.end() - static_cast<std::ptrdiff_t>(padded_dim));
    specs_.push_back(spec);
    longest_list_ = std::max(longest_list_, spec.k);
    return specs_.size() - 1;
  }

  std::size_t size() const { return specs_.size(); }
  bool empty() const { return specs_.empty(); }
  std::uint32_t longest_list() const { return longest_list_; }  // k
  SearchBatch batch() const { return {{vectors_.data(), specs_.size(), dim_}, specs_}; }

 private:
  std::size_t dim_ = 0;
  std::vector<float> vectors_;  // [searches, padded_dim]
  std::vector<QuerySpec> specs_;
  std::uint32_t longest_list_ = 0;
};

// The buffers that the leading thread searches with. Kept from search to search, so that a warm
// pass of plain queries allocates only the answers.
struct SearchWorkspace {
  SegmentSearch search;
  SearchBatchBuilder builder;
  SearchResult result;  // of the latest search

  // Call while nothing is searched.
  void FreeBuffers() {
    constexpr std::size_t kResultBytesKept = 1U << 20;
    if (result.buffer_bytes() > kResultBytesKept) result = SearchResult();
  }
};

inline QuerySpec ToSpec(const ResolvedQuery& query) {
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
