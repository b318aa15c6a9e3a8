#include "backend/cpu/scan_backend.h"

#include <cassert>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "backend/cpu/row_scores.h"
#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"

namespace simile::backend::cpu {
namespace {

// The threads and buffers that segments share. One search at a time has the threads; other searches
// wait or are paused.
struct ScanEngine {
  ScanEngine(const certificate::CanonicalKernel& of, unsigned threads)
      : kernel(of),
        name(ScanName(of)),
        pool(threads),
        scan(of, pool.thread_count(), name.c_str()),
        row_scores(of) {}

  const certificate::CanonicalKernel& kernel;
  const std::string name;
  std::mutex mutex;  // guards what follows
  ThreadPool pool;
  ScanSearch scan;  // for searches that are not paused
  RowScores row_scores;
};

class ScanIndex final : public SegmentIndex {
 public:
  ScanIndex(ScanEngine& engine, ScanEngine& aside, SegmentRows rows)
      : engine_(engine), aside_(aside), rows_(std::move(rows)) {}

  std::size_t row_count() const override { return rows_.rows.row_count(); }
  std::size_t dim() const override { return rows_.rows.dim(); }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    return Search(engine_, batch, result);
  }
  absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                    SearchResult& result) const override {
    try {
      return std::make_unique<Pass>(*this, batch, result);
    } catch (const std::bad_alloc&) {
      return NoMemoryForHits(batch, rows_, engine_.pool);
    }
  }
  bool CanPause() const override { return true; }
  absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const override {
    return Search(aside_, batch, result);
  }

  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* /*device_time*/) const override {
    const std::lock_guard lock(engine_.mutex);
    return engine_.row_scores.Run(engine_.pool, rows_, queries, rows, scores);
  }

 private:
  absl::Status Search(ScanEngine& engine, const SearchBatch& batch, SearchResult& result) const {
    const std::lock_guard lock(engine.mutex);
    try {
      PrepareResult(batch, rows_, result);
      engine.scan.Begin(rows_, batch, result);
      engine.scan.Advance(engine.pool, WholeTurn());
    } catch (const std::bad_alloc&) {
      return NoMemoryForHits(batch, rows_, engine.pool);
    }
    return absl::OkStatus();
  }

  // A search that may be paused.
  class Pass final : public SearchPass {
   public:
    // Throws std::bad_alloc.
    Pass(const ScanIndex& index, const SearchBatch& batch, SearchResult& result)
        : index_(index),
          batch_(batch),
          scan_(index.engine_.kernel, index.engine_.pool.thread_count(),
                index.engine_.name.c_str()) {
      PrepareResult(batch, index.rows_, result);
      scan_.Begin(index.rows_, batch, result);
    }

    absl::StatusOr<bool> Advance(const Turn& turn) override {
      ScanEngine& engine = index_.engine_;
      const std::lock_guard lock(engine.mutex);
      const ThreadPool::ScopedTurn scoped(engine.pool, turn);
      try {
        return scan_.Advance(engine.pool, turn);
      } catch (const std::bad_alloc&) {
        return NoMemoryForHits(batch_, index_.rows_, engine.pool);
      }
    }

    std::uint64_t bytes() const override { return scan_.bytes(); }

   private:
    const ScanIndex& index_;
    const SearchBatch batch_;
    ScanSearch scan_;
  };

  // Owned by the backend, which outlives its segments.
  ScanEngine& engine_;
  ScanEngine& aside_;
  const SegmentRows rows_;
};

class ScanBackend final : public Backend {
 public:
  ScanBackend(const certificate::CanonicalKernel& kernel, unsigned threads)
      : engine_(kernel, threads), aside_(kernel, 1) {
    info_ = {"cpu", engine_.name, DeviceName(engine_.pool)};
  }

  const BackendInfo& info() const override { return info_; }

  // The scan reads the snapshot's own rows and has no index.
  ResidentPlan Plan(const SegmentShape&) const override { return {}; }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    return std::make_shared<const ScanIndex>(engine_, aside_, rows);
  }

 private:
  ScanEngine engine_;
  ScanEngine aside_;  // for SearchAside
  BackendInfo info_;
};

}  // namespace

std::unique_ptr<Backend> MakeScanBackend(const certificate::CanonicalKernel& kernel,
                                         unsigned threads) {
  assert(threads >= 1);
  return std::make_unique<ScanBackend>(kernel, threads);
}

}  // namespace simile::backend::cpu
