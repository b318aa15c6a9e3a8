#include "backend/cpu/int8_backend.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/int8_search.h"
#include "backend/cpu/row_scores.h"
#include "backend/cpu/thread_pool.h"
#include "base/error_detail.h"
#include "base/threads.h"

namespace simile::backend::cpu {
namespace {

// Whether a segment is packed; a small segment is only scanned.
bool IsPacked(const Int8Options& options, std::size_t row_count) {
  return row_count > options.tuning.scan_rows_max;
}

PackedShape ShapeFor(const Int8Options& options, std::size_t row_count, std::size_t dim) {
  PackedShape shape = ChooseShape(row_count, dim, options.tuning.block_bytes);
  shape.has_int4 = options.small->reads_int4 && shape.position_count() * shape.rotated_dim >=
                                                    options.tuning.int4_from_code_bytes;
  return shape;
}

// The threads and buffers that segments share. One search at a time has the threads; other searches
// wait or are paused.
class Int8Engine {
 public:
  explicit Int8Engine(const Int8Options& options)
      : options_(options),
        pool_(options.threads),
        row_scores_(*options.canonical),
        names_{.scan = ScanName(*options.canonical),
               .gather = fmt::format("gather-{}", options.canonical->isa),
               .large = fmt::format("int8-{}", options.large->isa),
               .small = fmt::format("int8-{}", options.small->isa),
               .int4 = fmt::format("int4-{}", options.small->isa)} {
    idle_.reserve(kIdleSearches);
    idle_.push_back(NewSearch());
  }

  const Int8Options& options() const { return options_; }
  const ThreadPool& pool() const { return pool_; }
  const std::string& name() const { return names_.large; }

  // Whether a segment is packed at all.
  bool Packs(std::size_t row_count) const { return IsPacked(options_, row_count); }

  // As SegmentIndex::engine. Reads nothing that a search changes.
  //   packed  null while the rows are not packed
  const std::string& NameOfOneQuery(const PackedRows* packed) const {
    if (packed == nullptr) return names_.scan;
    return ChooseName(options_, names_, KernelFor(options_, 1), WidthFor(1, *packed));
  }

  // Returns an idle search, or a new one. Throws std::bad_alloc.
  std::unique_ptr<Int8Search> LendSearch() {
    {
      const std::lock_guard lock(idle_mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Int8Search> search = std::move(idle_.back());
        idle_.pop_back();
        return search;
      }
    }
    return NewSearch();
  }
  // Takes a search back. Keeps a few for later use, the first one regardless of its size.
  void GiveBack(std::unique_ptr<Int8Search> search) {
    search->End();
    const std::lock_guard lock(idle_mutex_);
    const bool is_kept = idle_.empty() || search->bytes() <= kIdleBytesMax;
    if (is_kept && idle_.size() < kIdleSearches) idle_.push_back(std::move(search));
  }

  // Throws std::bad_alloc.
  bool Advance(Int8Search& search, const Turn& turn) {
    const std::lock_guard lock(mutex_);
    const ThreadPool::ScopedTurn scoped(pool_, turn);
    return search.Advance(pool_, turn);
  }

  absl::StatusOr<FallbackBackend> Score(const SegmentRows& rows, MatrixView queries,
                                        std::span<const Row> wanted, std::span<float> scores) {
    const std::lock_guard lock(mutex_);
    return row_scores_.Run(pool_, rows, queries, wanted, scores);
  }

 private:
  // The most idle searches that are kept. More searches may be under way, each with its own
  // buffers.
  static constexpr std::size_t kIdleSearches = 3;
  static constexpr std::uint64_t kIdleBytesMax = std::uint64_t{32} << 20;

  std::unique_ptr<Int8Search> NewSearch() const {
    return std::make_unique<Int8Search>(options_, names_, pool_.thread_count());
  }

  const Int8Options options_;
  std::mutex mutex_;  // guards pool_ and row_scores_
  ThreadPool pool_;
  RowScores row_scores_;
  const Int8Names names_;
  std::mutex idle_mutex_;  // guards idle_
  std::vector<std::unique_ptr<Int8Search>> idle_;
};

// A search of the engine, lent for the life of this object.
class LentSearch {
 public:
  // Throws std::bad_alloc.
  explicit LentSearch(Int8Engine& engine) : engine_(engine), search_(engine.LendSearch()) {}
  ~LentSearch() { engine_.GiveBack(std::move(search_)); }
  LentSearch(const LentSearch&) = delete;
  LentSearch& operator=(const LentSearch&) = delete;

  Int8Search* operator->() const { return search_.get(); }
  bool Advance(const Turn& turn) { return engine_.Advance(*search_, turn); }

 private:
  Int8Engine& engine_;
  std::unique_ptr<Int8Search> search_;
};

// The check of new packed rows searches for this many rows, and for this many hits each.
constexpr std::size_t kChecks = 8;
constexpr std::uint32_t kCheckedHits = 10;

// Answers by the plain scan until the packed rows are built. A segment that is too small to pack is
// always scanned.
class Int8Index final : public SegmentIndex {
 public:
  Int8Index(Int8Engine& engine, Int8Engine& aside, SegmentRows rows)
      : engine_(engine),
        aside_(aside),
        rows_(std::move(rows)),
        shape_(ShapeFor(engine.options(), row_count(), dim())) {}

  ~Int8Index() override {
    progress_.cancelled = true;
    if (builder_.joinable()) builder_.join();
  }

  // Builds the packed rows, compares their answers with the plain scan's and, if equal, uses them.
  // Errors: kResourceExhausted for lack of memory; kInternal when the check fails.
  absl::Status Build() {
    absl::Status status = TryBuild();
    if (status.ok()) packed_.store(built_.get(), std::memory_order_release);
    const std::lock_guard lock(problem_mutex_);
    problem_ = status;
    return status;
  }
  // As Build, in a thread with a lower priority than the searches.
  void BuildInBackground() {
    try {
      builder_ = std::thread([this] {
        base::UseBackgroundPriority();
        static_cast<void>(Build());
      });
    } catch (const std::system_error&) {
      const std::lock_guard lock(problem_mutex_);
      problem_ = absl::ResourceExhaustedError("no thread to build the index with");
    }
  }

  std::size_t row_count() const override { return rows_.rows.row_count(); }
  std::size_t dim() const override { return rows_.rows.dim(); }

  absl::StatusOr<double> Built() const override {
    if (PackedIfBuilt() != nullptr || !engine_.Packs(row_count())) return 1.0;
    const std::lock_guard lock(problem_mutex_);
    if (!problem_.ok()) return problem_;
    // The check comes after the last chunk.
    const auto chunks = static_cast<double>(shape_.chunk_count() + 1);
    return static_cast<double>(progress_.chunks_done.load(std::memory_order_relaxed)) / chunks;
  }

  std::string_view engine() const override { return engine_.NameOfOneQuery(PackedIfBuilt()); }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    return Search(engine_, PackedIfBuilt(), batch, result);
  }
  absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                    SearchResult& result) const override {
    try {
      return std::make_unique<Pass>(*this, batch, result);
    } catch (const std::bad_alloc&) {
      return NoMemoryForHits(batch, rows_, engine_.pool());
    }
  }
  bool CanPause() const override { return true; }
  absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const override {
    return Search(aside_, PackedIfBuilt(), batch, result);
  }

  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* /*device_time*/) const override {
    return engine_.Score(rows_, queries, rows, scores);
  }

 private:
  // Null while the rows are not packed.
  const PackedRows* PackedIfBuilt() const { return packed_.load(std::memory_order_acquire); }

  absl::Status TryBuild() {
    try {
      built_ = PackedRows::Build(rows_.rows, shape_, engine_.pool().thread_count(), progress_);
      if (built_ == nullptr) {
        return absl::CancelledError("the index was cancelled before it was built");
      }
      return Check();
    } catch (const std::bad_alloc&) {
      return base::Error(
          base::ErrorReason::kDoesNotFit,
          fmt::format("no memory for the index of {} rows, {} bytes", row_count(), shape_.bytes()));
    }
  }

  // Searches for rows of the segment in the packed rows and by the plain scan, and compares the
  // answers. Small batches read int4 if there is any; one batch of all rows reads bytes.
  absl::Status Check() const {
    const std::size_t count = std::min(kChecks, row_count());
    const MatrixView queries = rows_.rows.Slice((row_count() - count) / 2, count);
    for (const std::size_t batch : {kQueriesTogether, kChecks}) {
      for (std::size_t first = 0; first < count; first += batch) {
        absl::Status status = Check(queries.Slice(first, std::min(batch, count - first)));
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Check(MatrixView queries) const {
    QuerySpec spec;
    spec.k = kCheckedHits;
    const std::vector<QuerySpec> specs(queries.row_count(), spec);
    SearchResult packed;
    SearchResult plain;
    absl::Status status = Search(aside_, built_.get(), {queries, specs}, packed);
    if (status.ok()) status = Search(aside_, nullptr, {queries, specs}, plain);
    if (!status.ok()) return status;
    for (std::size_t query = 0; query < specs.size(); ++query) {
      if (std::ranges::equal(packed.Hits(query), plain.Hits(query))) continue;
      return base::Error(
          base::ErrorReason::kInternal,
          "the index failed its check and is not used: its answers differ from the scan's");
    }
    return absl::OkStatus();
  }

  //   packed  null for the plain scan
  absl::Status Search(Int8Engine& engine, const PackedRows* packed, const SearchBatch& batch,
                      SearchResult& result) const {
    try {
      LentSearch search(engine);
      search->Begin(rows_, packed, batch, result);
      search.Advance(WholeTurn());
    } catch (const std::bad_alloc&) {
      return NoMemoryForHits(batch, rows_, engine.pool());
    }
    return absl::OkStatus();
  }

  // The search of an index that may be paused.
  class Pass final : public SearchPass {
   public:
    // Throws std::bad_alloc.
    Pass(const Int8Index& index, const SearchBatch& batch, SearchResult& result)
        : index_(index), batch_(batch), search_(index.engine_) {
      search_->Begin(index.rows_, index.PackedIfBuilt(), batch, result);
    }

    absl::StatusOr<bool> Advance(const Turn& turn) override {
      try {
        return search_.Advance(turn);
      } catch (const std::bad_alloc&) {
        return NoMemoryForHits(batch_, index_.rows_, index_.engine_.pool());
      }
    }

    std::uint64_t bytes() const override { return search_->bytes(); }

   private:
    const Int8Index& index_;
    const SearchBatch batch_;
    LentSearch search_;
  };

  // Owned by the backend, which outlives its segments.
  Int8Engine& engine_;
  Int8Engine& aside_;
  const SegmentRows rows_;
  const PackedShape shape_;
  PackedRows::Progress progress_;
  std::unique_ptr<const PackedRows> built_;
  std::atomic<const PackedRows*> packed_{nullptr};
  mutable std::mutex problem_mutex_;  // guards problem_
  absl::Status problem_;
  std::thread builder_;
};

class Int8Backend final : public Backend {
 public:
  explicit Int8Backend(const Int8Options& options)
      : engine_(options), aside_(WithOneThread(options)) {
    info_ = {"cpu", engine_.name(), DeviceName(engine_.pool())};
  }

  const BackendInfo& info() const override { return info_; }

  ResidentPlan Plan(const SegmentShape& shape) const override {
    return PlanInt8(engine_.options(), shape);
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    auto index = std::make_shared<Int8Index>(engine_, aside_, rows);
    if (!engine_.Packs(rows.rows.row_count())) return index;
    if (Plan({rows.rows.row_count(), rows.rows.dim(), rows.metric}).builds_later) {
      index->BuildInBackground();
      return index;
    }
    if (absl::Status status = index->Build(); !status.ok()) return status;
    return index;
  }

 private:
  static Int8Options WithOneThread(Int8Options options) {
    options.threads = 1;
    return options;
  }

  Int8Engine engine_;
  Int8Engine aside_;  // for checks of new indexes, so that no query waits for a check
  BackendInfo info_;
};

}  // namespace

Int8Options OptionsFor(std::string_view isa) {
  Int8Options options;
  const auto supported = SupportedInt8Kernels();
  options.large = isa.empty() ? supported.front() : FindInt8Kernel(isa);
  if (options.large == nullptr) return options;
  options.small = options.large;
  // AMX is fast with whole tiles of queries. A small batch fills no tile, so memory is the limit,
  // and the next kernel reads memory faster. There always is a next kernel, because the portable
  // one is always supported.
  if (isa.empty() && options.large == FindInt8Kernel("amx")) options.small = supported[1];
  options.canonical = isa.empty() ? certificate::SupportedCanonicalKernels().front()
                                  : certificate::FindCanonicalKernel(ToCanonicalIsa(isa));
  return options;
}

std::optional<PackedShape> PackedShapeFor(const Int8Options& options, std::size_t row_count,
                                          std::size_t dim) {
  if (!IsPacked(options, row_count)) return std::nullopt;
  return ShapeFor(options, row_count, dim);
}

ResidentPlan PlanInt8(const Int8Options& options, const SegmentShape& shape) {
  ResidentPlan plan;
  const auto packed = PackedShapeFor(options, shape.row_count, shape.dim);
  if (!packed) return plan;
  plan.host_bytes = packed->bytes();
  plan.host_build_bytes = PackedRows::BuildBytes(*packed, options.threads);
  plan.builds_later = shape.row_count * packed->rotated_dim > options.foreground_bytes_max;
  return plan;
}

std::unique_ptr<Backend> MakeInt8Backend(const Int8Options& options) {
  assert(options.threads >= 1);
  return std::make_unique<Int8Backend>(options);
}

}  // namespace simile::backend::cpu
