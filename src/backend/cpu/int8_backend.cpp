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

#include "backend/cpu/batch_finish.h"
#include "backend/cpu/gather.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/row_scores.h"
#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "backend/zero_query.h"
#include "base/background_priority.h"
#include "base/error_detail.h"
#include "simile/zero_vector.h"

namespace simile::backend::cpu {
namespace {

// One more query in a pass costs about as much as gathering row_count / 512 rows; scanning a
// gathered row for one query costs an eighth of gathering it. Estimated for AMX at a million rows
// of 384 dimensions: 0.15 ns a row of the pass, 80 ns to gather a row, 10 ns to score it; vector
// kernels take four times as long for a query of the pass. engine_cost.py measures gathers and
// passes under filters.
constexpr std::size_t kRowsOfJoining = 512;
constexpr std::size_t kScoresOfGathering = 8;

// A small segment is scanned plainly.
bool IsPacked(const Int8Options& options, std::size_t row_count) {
  return row_count > options.tuning.scan_rows_max;
}

PackedShape ShapeFor(const Int8Options& options, std::size_t row_count, std::size_t dim) {
  PackedShape shape = ShapeOf(row_count, dim, options.tuning.block_bytes);
  shape.has_int4 = options.small->reads_int4 && shape.position_count() * shape.rotated_dim >=
                                                    options.tuning.int4_from_code_bytes;
  return shape;
}

// The threads and buffers that segments share. Runs one search at a time; a second caller waits.
class Int8Engine {
 public:
  explicit Int8Engine(const Int8Options& options)
      : options_(options),
        pool_(options.threads),
        scan_(*options.canonical, pool_.thread_count()),
        gather_(scan_),
        row_scores_(*options.canonical),
        memory_(pool_.thread_count()),
        finish_(options.candidates_together),
        shares_(pool_.thread_count()),
        large_name_(fmt::format("int8-{}", options.large->isa)),
        small_name_(fmt::format("int8-{}", options.small->isa)),
        int4_name_(fmt::format("int4-{}", options.small->isa)) {}

  const Int8Options& options() const { return options_; }
  const ThreadPool& pool() const { return pool_; }
  const std::string& name() const { return large_name_; }

  // Whether a segment is packed at all.
  bool Packs(std::size_t row_count) const { return IsPacked(options_, row_count); }

  // As SegmentIndex::engine. Reads nothing that a search changes.
  //   packed  as for Search
  const std::string& NameOfOneQuery(const PackedRows* packed) const {
    return packed == nullptr ? scan_.name() : NameOf(KernelFor(1), WidthFor(1, *packed));
  }

  //   packed  null where the rows are not packed, or not yet
  // Throws std::bad_alloc.
  void Search(const SegmentRows& rows, const PackedRows* packed, const SearchBatch& batch,
              SearchResult& result) {
    const std::lock_guard lock(mutex_);
    PrepareResult(batch, rows, result);
    if (packed == nullptr) return scan_.Run(pool_, rows, batch, result);
    SplitByMask(rows, batch, result);
    RunGathers(rows, batch, result);
    RunPasses(rows, *packed, batch, result);
  }

  absl::StatusOr<FallbackBackend> Score(const SegmentRows& rows, MatrixView queries,
                                        std::span<const Row> wanted, std::span<float> scores) {
    const std::lock_guard lock(mutex_);
    return row_scores_.Run(pool_, rows, queries, wanted, scores);
  }

 private:
  // The kernel and the codes with which a pass for so many queries begins.
  const Int8Kernel& KernelFor(std::size_t query_count) const {
    return query_count >= options_.tuning.large_batch_min ? *options_.large : *options_.small;
  }
  static CodeWidth WidthFor(std::size_t query_count, const PackedRows& packed) {
    return packed.shape().has_int4 && query_count <= kQueriesTogether ? CodeWidth::kInt4
                                                                      : CodeWidth::kByte;
  }
  // What answers name it.
  const std::string& NameOf(const Int8Kernel& kernel, CodeWidth width) const {
    if (width == CodeWidth::kInt4) return int4_name_;
    return &kernel == options_.large ? large_name_ : small_name_;
  }

  // Queries of a batch that share a mask, neighbours in masked_.
  struct MaskGroup {
    std::size_t first;
    std::size_t count;
    std::size_t passing;  // rows
    bool gathered;
  };

  // Answers queries of zeros and sorts the others into queries to scan for and, mask by mask,
  // queries to gather for.
  void SplitByMask(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result) {
    ListMasks(rows, batch, result);
    ChooseGathers(rows.rows.row_count());
    for (const MaskGroup& group : groups_) {
      if (group.gathered) continue;
      const auto queries = QueriesOf(group);
      scanned_.insert(scanned_.end(), queries.begin(), queries.end());
    }
  }

  std::span<const std::uint32_t> QueriesOf(const MaskGroup& group) const {
    return std::span(masked_).subspan(group.first, group.count);
  }

  void ListMasks(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result) {
    const auto mask_of = [&](std::uint32_t query) { return batch.specs[query].mask; };
    scanned_.clear();
    masked_.clear();
    for (std::uint32_t query = 0; query < batch.specs.size(); ++query) {
      if (IsZeroVector(batch.queries[query])) {
        AnswerZeroQuery(rows, batch.specs[query], query, result);
        continue;
      }
      (mask_of(query) == nullptr ? scanned_ : masked_).push_back(query);
    }
    std::ranges::sort(masked_, [&](std::uint32_t a, std::uint32_t b) {
      return mask_of(a) != mask_of(b) ? std::less<>()(mask_of(a), mask_of(b)) : a < b;
    });
    const Row end = rows.first_row + static_cast<Row>(rows.rows.row_count());
    groups_.clear();
    for (std::size_t first = 0, last = 0; first < masked_.size(); first = last) {
      const RowMask* mask = mask_of(masked_[first]);
      while (last < masked_.size() && mask_of(masked_[last]) == mask) ++last;
      groups_.push_back({first, last - first, mask->AllowedCount(rows.first_row, end), false});
    }
  }

  // A pass reads all codes, however many queries need it, and one more query costs little. So the
  // rows of a mask are gathered where that saves the whole pass, or where they are so few that
  // joining the pass costs more.
  void ChooseGathers(std::size_t row_count) {
    const std::size_t few = row_count / options_.tuning.gather_share;
    std::size_t rows_instead = 0;  // gathered instead of a pass for masked queries alone
    for (MaskGroup& group : groups_) {
      group.gathered = group.passing * (1 + group.count / kScoresOfGathering) <=
                       group.count * row_count / kRowsOfJoining;
      if (!group.gathered) rows_instead += group.passing;
    }
    if (!scanned_.empty() || rows_instead > few) return;  // the pass is needed
    for (MaskGroup& group : groups_) group.gathered = true;
  }

  void RunGathers(const SegmentRows& rows, const SearchBatch& batch, SearchResult& result) {
    for (const MaskGroup& group : groups_) {
      if (group.gathered) gather_.Run(pool_, rows, batch, QueriesOf(group), result);
    }
  }

  void RunPasses(const SegmentRows& rows, const PackedRows& packed, const SearchBatch& batch,
                 SearchResult& result) {
    uncertain_.clear();
    RunPasses(rows, packed, batch, scanned_, true, result);
    // The end of a pass has detected which guesses were wrong: search those again with proven
    // gates.
    scanned_.swap(uncertain_);
    uncertain_.clear();
    if (!scanned_.empty()) RunPasses(rows, packed, batch, scanned_, false, result);
    assert(uncertain_.empty());
  }

  void RunPasses(const SegmentRows& rows, const PackedRows& packed, const SearchBatch& batch,
                 std::span<const std::uint32_t> queries, bool speculative, SearchResult& result) {
    const unsigned threads = pool_.thread_count();
    while (!queries.empty()) {
      const std::size_t count =
          QueriesOfInt8Pass(batch.specs, queries, rows.rows.row_count(), threads);
      const std::span<const std::uint32_t> taken = queries.first(count);
      queries = queries.subspan(count);
      const Int8Segment segment{rows, packed, KernelFor(count), scan_.kernel(),
                                options_.small_pass_bytes};
      if (threads > 1 && count / threads >= options_.tuning.queries_of_thread_min) {
        RunShares(segment, batch, taken, speculative, result);
      } else {
        Int8Pass pass(segment, batch, taken, speculative, WidthFor(count, packed), memory_, result);
        pass.Scan(pool_);
        if (FinishesByRow(segment, batch, taken)) {
          Int8Pass* const one = &pass;
          finish_.Run(pool_, segment, {&one, 1});
        } else {
          pass.Finish(pool_);
        }
        Conclude(pass, segment.kernel, result);
      }
    }
  }

  // Gives each thread a pass over all rows for its share of the queries.
  void RunShares(const Int8Segment& segment, const SearchBatch& batch,
                 std::span<const std::uint32_t> queries, bool speculative, SearchResult& result) {
    const std::size_t threads = shares_.size();
    for (std::size_t i = 0; i < threads; ++i) {
      const std::size_t first = queries.size() * i / threads;
      const std::size_t end = queries.size() * (i + 1) / threads;
      shares_[i].pass.emplace(segment, batch, queries.subspan(first, end - first), speculative,
                              CodeWidth::kByte, shares_[i].memory, result);
    }
    ForEachShare([this](Int8Pass& pass) { pass.Scan(alone_); });
    if (FinishesByRow(segment, batch, queries)) {
      std::vector<Int8Pass*>& passes = passes_of_shares_;
      passes.clear();
      for (Share& share : shares_) passes.push_back(&*share.pass);
      finish_.Run(pool_, segment, passes);
    } else {
      ForEachShare([this](Int8Pass& pass) { pass.Finish(alone_); });
    }
    for (Share& share : shares_) {
      Conclude(*share.pass, segment.kernel, result);
      share.pass.reset();  // the pass borrows the batch
    }
  }

  template <class Work>
  void ForEachShare(Work work) {
    std::atomic<std::size_t> next{0};
    auto run = [&](unsigned /*participant*/) {
      ClaimParts(next, shares_.size(), 1,
                 [&](std::size_t i, std::size_t) { work(*shares_[i].pass); });
    };
    pool_.Run(run);
  }

  // Whether the candidates of these queries are scored row by row: where a row is wanted by so many
  // of several queries on average, as far as k says, and threads are woken at all.
  bool FinishesByRow(const Int8Segment& segment, const SearchBatch& batch,
                     std::span<const std::uint32_t> queries) const {
    const std::size_t row_count = segment.rows.rows.row_count();
    std::size_t wanted = 0;
    for (const std::uint32_t query : queries)
      wanted += std::min<std::size_t>(batch.specs[query].k, row_count);
    const bool several = queries.size() >= Rescorer::kRowsScoredTogether;
    return several &&
           !IsSmallPass(segment.packed.shape(), queries.size(), options_.small_pass_bytes) &&
           wanted / row_count >= options_.row_order_hits_per_row;
  }

  void Conclude(const Int8Pass& pass, const Int8Kernel& kernel, SearchResult& result) {
    const std::string& name = NameOf(kernel, pass.width());
    for (std::size_t i = 0; i < pass.queries().size(); ++i) {
      const std::uint32_t query = pass.queries()[i];
      result.SetEngine(query, name.c_str());
      if (!pass.certain(i)) uncertain_.push_back(query);
    }
  }

  // One thread's part of a batch whose queries are divided.
  struct Share {
    Int8Memory memory{1};
    std::optional<Int8Pass> pass;  // while such a batch runs
  };

  const Int8Options options_;
  std::mutex mutex_;  // guards what follows
  ThreadPool pool_;
  ScanSearch scan_;
  Gather gather_;
  RowScores row_scores_;
  Int8Memory memory_;
  BatchFinish finish_;
  ThreadPool alone_{1};  // has no threads of its own
  std::vector<Share> shares_;
  std::vector<Int8Pass*> passes_of_shares_;
  // The strategies as answers name them.
  const std::string large_name_;
  const std::string small_name_;
  const std::string int4_name_;
  std::vector<std::uint32_t> scanned_;
  std::vector<std::uint32_t> uncertain_;
  std::vector<std::uint32_t> masked_;  // by mask
  std::vector<MaskGroup> groups_;
};

// How many rows are searched for as queries to check new packed rows, and for how many hits each.
constexpr std::size_t kChecks = 8;
constexpr std::uint32_t kCheckedHits = 10;

// Answers by the plain scan until its packed rows are built, or always where it is too small to
// pack.
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
  // The same in a thread of lower priority than the searches.
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
  absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const override {
    return Search(aside_, PackedIfBuilt(), batch, result);
  }

  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* /*device_time*/) const override {
    return engine_.Score(rows_, queries, rows, scores);
  }

 private:
  // Null where the rows are not packed, or not yet.
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

  // Searches for rows of the segment through the packed rows and by the plain scan: few at a time,
  // which read int4 if there is any, and all together, which read bytes.
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
          "the index failed its check and is not used: its answers are not those of the scan");
    }
    return absl::OkStatus();
  }

  //   packed  null for the plain scan
  absl::Status Search(Int8Engine& engine, const PackedRows* packed, const SearchBatch& batch,
                      SearchResult& result) const {
    try {
      engine.Search(rows_, packed, batch, result);
    } catch (const std::bad_alloc&) {
      return NoMemoryForHits(batch, rows_, engine.pool());
    }
    return absl::OkStatus();
  }

  // The backend's, which outlives its segments.
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
  explicit Int8Backend(const Int8Options& options) : engine_(options), aside_(AloneOf(options)) {
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
  static Int8Options AloneOf(Int8Options options) {
    options.threads = 1;
    return options;
  }

  Int8Engine engine_;
  Int8Engine aside_;  // for checks of new indexes, which no query may wait for
  BackendInfo info_;
};

}  // namespace

Int8Options OptionsFor(std::string_view isa) {
  Int8Options options;
  const auto supported = SupportedInt8Kernels();
  options.large = isa.empty() ? supported.front() : FindInt8Kernel(isa);
  if (options.large == nullptr) return options;
  options.small = options.large;
  // AMX wants whole tiles of queries: a small batch fills none, so that memory is the limit, and
  // the next kernel reads it faster. There is one: the portable kernel is always supported.
  if (isa.empty() && options.large == FindInt8Kernel("amx")) options.small = supported[1];
  options.canonical = isa.empty() ? certificate::SupportedCanonicalKernels().front()
                                  : certificate::FindCanonicalKernel(CanonicalIsaOf(isa));
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
