#include "backend/cpu/scan_search.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "backend/cpu/cpu_name.h"
#include "backend/cpu/scan_plan.h"
#include "base/error_detail.h"

namespace simile::backend::cpu {

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

ScanSearch::ScanSearch(const certificate::CanonicalKernel& kernel, unsigned threads)
    : kernel_(kernel), name_("scan-" + std::string(kernel.isa)), scratch_(threads) {}

void ScanSearch::Run(ThreadPool& pool, const SegmentRows& rows, const SearchBatch& batch,
                     SearchResult& result) {
  const std::size_t row_count = rows.rows.row_count();
  if (row_count == 0) return;
  const auto threads = static_cast<unsigned>(scratch_.size());
  for (std::size_t first = 0; first < batch.specs.size();) {
    const std::size_t count = QueriesOfOnePass(batch.specs.subspan(first), row_count, threads);
    ScanPass(kernel_, rows, batch, first, count, scratch_, result).Run(pool);
    for (std::size_t query = first; query < first + count; ++query)
      result.SetEngine(query, name_.c_str());
    first += count;
  }
}

}  // namespace simile::backend::cpu
