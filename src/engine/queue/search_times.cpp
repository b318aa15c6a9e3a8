#include "engine/queue/search_times.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <absl/status/statusor.h>

#include "engine/search/search_task.h"

namespace simile::engine {
namespace {

// The sizes of the measured passes. The estimator allows four times the largest measured pass:
// 1,024.
constexpr std::array<std::uint32_t, 4> kSizes = {1, 8, 64, 256};
constexpr std::uint32_t kMeasuredHits = 10;
// Passes of each size; fewer when they take longer than kRepeatsMs together.
constexpr int kRepeats = 3;
constexpr double kRepeatsMs = 60;
// A pass that would take longer is not run: it would keep other bulk work waiting.
constexpr double kPassMsMax = 500;

// Searchable rows, spread over the snapshot because neighbours are often alike.
std::vector<Row> RowsToAsk(const Snapshot& snapshot) {
  std::vector<Row> rows;
  const RowMask* const searchable = snapshot.searchable.get();
  const std::size_t row_count = snapshot.row_count();
  const std::size_t step = std::max<std::size_t>(1, row_count / kSizes.back());
  for (std::size_t first = 0; first < row_count && rows.size() < kSizes.back(); first += step) {
    const std::size_t end = std::min(row_count, first + step);
    std::size_t row = first;
    while (searchable != nullptr && row < end && !searchable->Allows(static_cast<Row>(row))) ++row;
    if (row < end) rows.push_back(static_cast<Row>(row));
  }
  return rows;
}

// A task that searches for these rows, without `done`. Repeats the rows when there are fewer than
// query_count.
absl::StatusOr<std::unique_ptr<SearchTask>> MakeTask(const SnapshotPtr& snapshot,
                                                     const std::vector<Row>& rows,
                                                     std::uint32_t query_count) {
  absl::StatusOr<data::Matrix> vectors = data::Matrix::Create(query_count, snapshot->dim());
  if (!vectors.ok()) return vectors.status();
  for (std::uint32_t query = 0; query < query_count; ++query) {
    std::ranges::copy(snapshot->dataset->vectors.view()[rows[query % rows.size()]],
                      vectors->MutableRow(query));
  }
  ResolvedQuery query;
  query.k = kMeasuredHits;
  query.mask = snapshot->searchable;
  query.score_threshold = -std::numeric_limits<float>::infinity();
  auto task = std::make_unique<SearchTask>();
  task->snapshot = snapshot;
  task->vectors = *std::move(vectors);
  task->queries.assign(query_count, query);
  task->priority = Priority::kBulk;
  task->is_measurement = true;
  task->deadline = Clock::TimePoint::max();
  return task;
}

}  // namespace

class SearchTimes::Measurements : public std::enable_shared_from_this<Measurements> {
 public:
  Measurements(Executor& executor, const Clock& clock) : executor_(executor), clock_(clock) {}

  void Look(const std::vector<SnapshotPtr>& served);

 private:
  // The measurement of one snapshot.
  struct Measured {
    std::weak_ptr<const Snapshot> snapshot;
    std::vector<Row> rows;  // to search for; empty: nothing to measure
    bool built = false;     // whether its index was built at the start
    std::size_t size = 0;   // index in kSizes of the next pass
    int repeats = 0;        // done with this size
    double took_ms = 0;     // by these repeats

    bool is_done() const { return size == kSizes.size() || rows.empty(); }
  };
  struct Pass {
    SnapshotPtr snapshot;  // null: nothing is left to measure
    std::vector<Row> rows;
    std::uint32_t queries = 0;
  };

  // Begins the next pass, unless one is queued or under way.
  void RunNext();
  Pass TakeNext();
  bool Submit(const Pass& pass);
  void Ended(const std::weak_ptr<const Snapshot>& snapshot,
             const absl::StatusOr<SearchAnswer>& answer);
  // Null for none. REQUIRES: mutex_ is held.
  Measured* Find(const SnapshotPtr& snapshot);

  Executor& executor_;
  const Clock& clock_;
  std::mutex mutex_;                // guards what follows
  std::vector<Measured> measured_;  // the served snapshots
  bool running_ = false;            // a pass is queued or under way
};

void SearchTimes::Measurements::Look(const std::vector<SnapshotPtr>& served) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(measured_, [&](const Measured& measured) {
      return std::ranges::find(served, measured.snapshot.lock()) == served.end();
    });
    for (const SnapshotPtr& snapshot : served) {
      const bool built = FindIndexState(*snapshot).built >= 1;
      Measured* const known = Find(snapshot);
      if (known != nullptr && known->built == built) continue;
      Measured measured{.snapshot = snapshot, .rows = RowsToAsk(*snapshot), .built = built};
      if (known != nullptr) {
        *known = std::move(measured);
      } else {
        measured_.push_back(std::move(measured));
      }
      // Times of the slower strategy, or of a freed snapshot at the same address.
      executor_.ForgetTimes(*snapshot);
    }
  }
  RunNext();
}

SearchTimes::Measurements::Measured* SearchTimes::Measurements::Find(const SnapshotPtr& snapshot) {
  const auto found = std::ranges::find_if(
      measured_, [&](const Measured& measured) { return measured.snapshot.lock() == snapshot; });
  return found == measured_.end() ? nullptr : &*found;
}

void SearchTimes::Measurements::RunNext() {
  const Pass pass = TakeNext();
  if (pass.snapshot == nullptr || Submit(pass)) return;
  const std::lock_guard lock(mutex_);
  running_ = false;  // until the next Look
}

SearchTimes::Measurements::Pass SearchTimes::Measurements::TakeNext() {
  const std::lock_guard lock(mutex_);
  if (running_) return {};
  for (Measured& measured : measured_) {
    const SnapshotPtr snapshot = measured.snapshot.lock();
    if (snapshot == nullptr || measured.is_done()) continue;
    const std::uint32_t queries = kSizes[measured.size];
    if (queries > 1 && executor_.EstimateMs(*snapshot, kMeasuredHits, queries) > kPassMsMax) {
      measured.size = kSizes.size();
      continue;
    }
    Pass pass{snapshot, measured.rows, queries};
    running_ = true;
    return pass;
  }
  return {};
}

bool SearchTimes::Measurements::Submit(const Pass& pass) {
  try {
    auto task = MakeTask(pass.snapshot, pass.rows, pass.queries);
    if (!task.ok()) return false;
    (*task)->arrived_at = clock_.Now();
    (*task)->done = [self = shared_from_this(), snapshot = std::weak_ptr(pass.snapshot)](
                        const absl::StatusOr<SearchAnswer>& answer) {
      self->Ended(snapshot, answer);
    };
    return executor_.Submit(*std::move(task)).ok();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void SearchTimes::Measurements::Ended(const std::weak_ptr<const Snapshot>& snapshot,
                                      const absl::StatusOr<SearchAnswer>& answer) {
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    if (!answer.ok()) return;  // until the next Look
    if (Measured* const measured = Find(snapshot.lock()); measured != nullptr) {
      measured->took_ms += static_cast<double>(answer->receipt.compute_us) / 1000;
      if (++measured->repeats == kRepeats || measured->took_ms > kRepeatsMs) {
        ++measured->size;
        measured->repeats = 0;
        measured->took_ms = 0;
      }
    }
  }
  try {
    RunNext();
  } catch (const std::bad_alloc&) {
    // Until the next Look.
  }
}

SearchTimes::SearchTimes(Executor& executor, const Clock& clock)
    : measurements_(std::make_shared<Measurements>(executor, clock)) {}

void SearchTimes::Look(const std::vector<SnapshotPtr>& served) { measurements_->Look(served); }

}  // namespace simile::engine
