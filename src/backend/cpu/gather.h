#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "base/page_buffer.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Answers queries whose mask lets few rows pass: copies those rows together and scans the copy. The
// rows keep their order, so that ties are broken as in the whole segment. Keeps its buffers from
// one search to the next; used by one thread at a time.
class Gather {
 public:
  //   scan  borrowed
  explicit Gather(ScanSearch& scan)
      : scan_(scan), name_("gather-" + std::string(scan.kernel().isa)) {}

  // Answers queries that share one mask.
  //   queries  which of the batch; their answers go to the same places of result
  // Throws std::bad_alloc. Cost: the passing rows are read and written once, then scanned.
  void Run(ThreadPool& pool, const SegmentRows& rows, const SearchBatch& batch,
           std::span<const std::uint32_t> queries, SearchResult& result);

 private:
  void ListRows(const SegmentRows& rows, const RowMask& mask);
  void CopyRows(ThreadPool& pool, const SegmentRows& rows);
  void CopyQueries(const SearchBatch& batch, std::span<const std::uint32_t> queries);

  ScanSearch& scan_;
  const std::string name_;
  std::vector<Row> passing_;                // the caller's row numbers, ascending
  base::PageBuffer rows_;                   // [passing, padded_dim]
  base::PageBuffer queries_;                // [queries, padded_dim]
  std::vector<QuerySpec> specs_;            // of the copies
  std::vector<std::vector<Row>> excluded_;  // of each query, as row numbers of the copy
  SearchResult result_;
};

}  // namespace simile::backend::cpu
