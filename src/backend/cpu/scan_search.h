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

// The name of the plain scan in receipts: "scan-avx512".
std::string ScanName(const certificate::CanonicalKernel& kernel);
// The name of the processor and its threads in receipts: "AMD EPYC 9B14, 2 threads".
std::string DeviceName(const ThreadPool& pool);

absl::Status NoMemoryForHits(const SearchBatch& batch, const SegmentRows& rows,
                             const ThreadPool& pool);

// Resets the result for the batch. REQUIRES: as SegmentIndex::Search.
void PrepareResult(const SearchBatch& batch, const SegmentRows& rows, SearchResult& result);

// The plain exact scan of a batch, in as many passes as the memory limit needs. One search at a
// time; keeps its buffers for the next search.
class ScanSearch {
 public:
  //   threads  of the pool it will be run with
  //   name     the strategy's name in receipts; lives as long as the backend
  ScanSearch(const certificate::CanonicalKernel& kernel, unsigned threads, const char* name);

  const certificate::CanonicalKernel& kernel() const { return kernel_; }
  // The bytes of the buffers that grow with queries and their hits.
  std::uint64_t bytes() const;

  // Ends the previous search and begins a new one. Borrows rows, result and everything that the
  // batch borrows.
  // REQUIRES: result has been Reset for the batch.
  void Begin(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result);
  // Continues until the turn is over. Returns whether the search is done. Throws std::bad_alloc.
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
