#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Answers queries whose mask lets few rows pass: copies the passing rows together and scans the
// copy. The rows keep their order, so that ties are broken as in the whole segment. Runs one search
// at a time; keeps its buffers for the next search.
class Gather {
 public:
  //   scan  borrowed
  //   name  the strategy's name in receipts; lives as long as the backend
  Gather(ScanSearch& scan, const char* name) : scan_(scan), name_(name) {}

  // Begins to answer queries that share one mask. Borrows all arguments.
  //   queries  indexes of the queries in the batch, and of their answers in result
  // Throws std::bad_alloc.
  void Begin(const SegmentRows& rows, const SearchBatch& batch,
             std::span<const std::uint32_t> queries, SearchResult& result);
  // Continues until the turn is over. Returns whether all queries are answered. Throws
  // std::bad_alloc. Total cost: the passing rows are read and written once, then scanned.
  bool Advance(ThreadPool& pool, const Turn& turn);
  // The bytes of the buffers that grow with queries, passing rows and hits.
  std::uint64_t bytes() const;

 private:
  void ListRows(const RowMask& mask);
  bool CopyRows(ThreadPool& pool, const Turn& turn);
  bool CopyQueries(const Turn& turn);
  void CopyQuery(std::size_t i);
  void BeginScan();
  void WriteAnswers();

  ScanSearch& scan_;
  const char* const name_;
  std::vector<Row> passing_;                // the caller's row numbers, ascending
  base::PageBuffer rows_;                   // [passing, padded_dim]
  base::PageBuffer queries_;                // [queries, padded_dim]
  std::vector<QuerySpec> specs_;            // of the copies
  std::vector<std::vector<Row>> excluded_;  // of each query, as row numbers of the copy
  SearchResult copied_result_;
  SegmentRows copies_;
  // Of the search:
  const SegmentRows* of_ = nullptr;
  SearchBatch batch_;
  std::span<const std::uint32_t> wanted_;  // queries
  SearchResult* result_ = nullptr;
  StepsDone steps_;
  PartsOfJob rows_copied_;
  std::size_t queries_copied_ = 0;
};

}  // namespace simile::backend::cpu
