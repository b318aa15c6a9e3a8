#include "backend/cpu/scan_search.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "backend/cpu/processor.h"
#include "backend/cpu/scan_pass.h"
#include "base/error_detail.h"

namespace simile::backend::cpu {

std::string ScanName(const certificate::CanonicalKernel& kernel) {
  return fmt::format("scan-{}", kernel.isa);
}

std::string DeviceName(const ThreadPool& pool) {
  const unsigned threads = pool.thread_count();
  return fmt::format("{}, {} thread{}", CpuName(), threads, threads == 1 ? "" : "s");
}

absl::Status NoMemoryForHits(const SearchBatch& batch, const SegmentRows& rows,
                             const ThreadPool& pool) {
  return base::Error(
      base::ErrorReason::kOutOfMemory,
      fmt::format("no memory to collect the hits of {} queries over {} rows with {} threads; "
                  "send fewer queries at once or ask for a smaller k",
                  batch.specs.size(), rows.rows.row_count(), pool.thread_count()));
}

void PrepareResult(const SearchBatch& batch, const SegmentRows& rows, SearchResult& result) {
  assert(batch.queries.dim() == rows.rows.dim());
  assert(batch.queries.row_count() == batch.specs.size());
  for ([[maybe_unused]] const QuerySpec& spec : batch.specs) {
    assert(spec.k >= 1);
    assert(spec.mask == nullptr ||
           spec.mask->row_count() >= rows.first_row + rows.rows.row_count());
    assert(std::is_sorted(spec.excluded_rows.begin(), spec.excluded_rows.end()));
  }
  result.Reset(batch.specs, rows.rows.row_count());
}

ScanSearch::ScanSearch(const certificate::CanonicalKernel& kernel, unsigned threads,
                       const char* name)
    : kernel_(kernel), name_(name), scratch_(threads) {}

std::uint64_t ScanSearch::bytes() const {
  std::uint64_t bytes = 0;
  for (const ScanScratch& scratch : scratch_) bytes += scratch.keys.size() * sizeof(RankKey);
  return bytes;
}

void ScanSearch::Begin(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result) {
  rows_ = &rows;
  batch_ = batch;
  result_ = &result;
  first_query_ = 0;
  pass_.reset();
}

bool ScanSearch::Advance(ThreadPool& pool, const Turn& turn) {
  const std::size_t row_count = rows_->rows.row_count();
  if (row_count == 0) return true;
  while (first_query_ < batch_.specs.size()) {
    if (!pass_) {
      query_count_ = QueriesOfOnePass(batch_.specs.subspan(first_query_), row_count,
                                      static_cast<unsigned>(scratch_.size()));
      pass_.emplace(kernel_, *rows_, batch_, first_query_, query_count_, scratch_, *result_);
    }
    if (!pass_->Advance(pool, turn)) return false;
    pass_.reset();
    for (; query_count_ > 0; --query_count_) result_->SetEngine(first_query_++, name_);
  }
  return true;
}

}  // namespace simile::backend::cpu
