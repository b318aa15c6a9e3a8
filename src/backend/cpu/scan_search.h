#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/scan_pass.h"
#include "backend/cpu/thread_pool.h"
#include "certificate/canonical_score.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// What receipts call the plain scan: "scan-avx512".
std::string ScanName(const certificate::CanonicalKernel& kernel);
// What receipts call the processor and its threads: "AMD EPYC 9B14, 2 threads".
std::string DeviceName(const ThreadPool& pool);

absl::Status NoMemoryForHits(const SearchBatch& batch, const SegmentRows& rows,
                             const ThreadPool& pool);

// Resets the result for the batch. REQUIRES: what SegmentIndex::Search does.
void PrepareResult(const SearchBatch& batch, const SegmentRows& rows, SearchResult& result);

// The plain exact scan of a batch, in as many passes as its memory needs. One search at a time;
// keeps its buffers from one to the next.
class ScanSearch {
 public:
  //   threads  of the pool it will be run with
  //   name     what receipts call it; lives as long as the backend
  ScanSearch(const certificate::CanonicalKernel& kernel, unsigned threads, const char* name);

  const certificate::CanonicalKernel& kernel() const { return kernel_; }
  // Of the buffers that grow with queries and their hits.
  std::uint64_t bytes() const;

  // Begins a search, and ends the one before. Borrows rows, what the batch borrows, and result.
  // REQUIRES: result has been Reset for the batch.
  void Begin(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result);
  // Searches on until the turn is over. Returns whether the search is done. Throws std::bad_alloc.
  bool Advance(ThreadPool& pool, const Turn& turn);

 private:
  const certificate::CanonicalKernel& kernel_;
  const char* const name_;
  std::vector<ScanScratch> scratch_;
  // Of the search:
  const SegmentRows* rows_ = nullptr;
  SearchBatch batch_;
  SearchResult* result_ = nullptr;
  std::size_t first_query_ = 0;  // of the pass
  std::size_t query_count_ = 0;
  std::optional<ScanPass> pass_;
};

}  // namespace simile::backend::cpu
