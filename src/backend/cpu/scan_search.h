#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backend/cpu/scan_pass.h"
#include "backend/cpu/thread_pool.h"
#include "certificate/canonical_score.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// What receipts call the processor and its threads: "AMD EPYC 9B14, 2 threads".
std::string DeviceName(const ThreadPool& pool);

absl::Status NoMemoryForHits(const SearchBatch& batch, const SegmentRows& rows,
                             const ThreadPool& pool);

// Resets the result for the batch. REQUIRES: what SegmentIndex::Search does.
void PrepareResult(const SearchBatch& batch, const SegmentRows& rows, SearchResult& result);

// The plain exact scan of a batch, in as many passes as its memory needs. Keeps its buffers from
// one search to the next; used by one thread at a time.
class ScanSearch {
 public:
  //   threads  of the pool it will be run with
  ScanSearch(const certificate::CanonicalKernel& kernel, unsigned threads);

  // What receipts call it: "scan-avx512".
  const std::string& name() const { return name_; }
  const certificate::CanonicalKernel& kernel() const { return kernel_; }

  // REQUIRES: result has been Reset for the batch. Throws std::bad_alloc.
  void Run(ThreadPool& pool, const SegmentRows& rows, const SearchBatch& batch,
           SearchResult& result);

 private:
  const certificate::CanonicalKernel& kernel_;
  const std::string name_;
  std::vector<ScanScratch> scratch_;
};

}  // namespace simile::backend::cpu
