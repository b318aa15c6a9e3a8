#include "backend/cpu/scan_backend.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/cpu_name.h"
#include "backend/cpu/scan_pass.h"
#include "backend/cpu/scan_plan.h"
#include "backend/cpu/thread_pool.h"

namespace simile::backend::cpu {
namespace {

// The threads and buffers that all segments of the backend share. One search at a time: a second
// caller waits, though the dispatch thread is the only one in normal service.
struct ScanEngine {
  ScanEngine(const certificate::CanonicalKernel& kernel_in, unsigned threads)
      : kernel(kernel_in), pool(threads), scratch(pool.thread_count()) {}

  const certificate::CanonicalKernel& kernel;
  std::mutex mutex;  // guards what follows
  ThreadPool pool;
  std::vector<ScanScratch> scratch;
};

class ScanIndex final : public SegmentIndex {
 public:
  ScanIndex(ScanEngine& engine, SegmentRows rows) : engine_(engine), rows_(std::move(rows)) {}

  std::size_t row_count() const override { return rows_.rows.row_count(); }
  std::size_t dim() const override { return rows_.rows.dim(); }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    assert(batch.queries.dim() == dim());
    assert(batch.queries.row_count() == batch.specs.size());
    const std::lock_guard lock(engine_.mutex);
    try {
      SearchLocked(batch, result);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(
          fmt::format("no memory to collect the hits of {} queries over {} rows with {} threads; "
                      "send fewer queries at once or ask for a smaller k",
                      batch.specs.size(), row_count(), engine_.scratch.size()));
    }
    return absl::OkStatus();
  }

 private:
  void SearchLocked(const SearchBatch& batch, SearchResult& result) const {
    std::size_t hits_max = 0;
    for ([[maybe_unused]] const QuerySpec& spec : batch.specs) {
      assert(spec.k >= 1);
      assert(spec.mask == nullptr || spec.mask->row_count() >= rows_.first_row + row_count());
      assert(std::is_sorted(spec.excluded_rows.begin(), spec.excluded_rows.end()));
      hits_max = std::max(hits_max, std::min<std::size_t>(spec.k, row_count()));
    }
    result.Reset(batch.specs.size(), hits_max);
    if (row_count() == 0) return;
    const auto threads = static_cast<unsigned>(engine_.scratch.size());
    for (std::size_t first = 0; first < batch.specs.size();) {
      const std::size_t count = QueriesOfOnePass(batch.specs.subspan(first), row_count(), threads);
      ScanPass(engine_.kernel, rows_, batch, first, count, engine_.scratch, result)
          .Run(engine_.pool);
      first += count;
    }
  }

  ScanEngine& engine_;  // the backend's, which outlives its segments
  const SegmentRows rows_;
};

class ScanBackend final : public Backend {
 public:
  ScanBackend(const certificate::CanonicalKernel& kernel, unsigned threads)
      : engine_(kernel, threads) {
    const unsigned got = engine_.pool.thread_count();
    info_.name = "cpu";
    info_.engine = fmt::format("scan-{}", kernel.isa);
    info_.device = fmt::format("{}, {} thread{}", CpuName(), got, got == 1 ? "" : "s");
  }

  const BackendInfo& info() const override { return info_; }

  // The scan reads the snapshot's own rows and keeps nothing beside them.
  ResidentPlan Plan(const SegmentShape&) const override { return {}; }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    return std::make_shared<const ScanIndex>(engine_, rows);
  }

 private:
  ScanEngine engine_;
  BackendInfo info_;
};

}  // namespace

std::unique_ptr<Backend> MakeScanBackend(const certificate::CanonicalKernel& kernel,
                                         unsigned threads) {
  assert(threads >= 1);
  return std::make_unique<ScanBackend>(kernel, threads);
}

}  // namespace simile::backend::cpu
