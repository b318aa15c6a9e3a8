#include "engine/queue/search_times.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/answers.h"
#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

// Searches of a fake segment, which take as long as the test says.
class SearchTimesTest : public testing::Test {
 protected:
  // Each search takes 0.5 ms and so long for each query.
  explicit SearchTimesTest(double query_ms = 0.01) : query_ms_(query_ms) {
    segment_->pieces = 2;  // so that a pass has all its queries, however long it takes
    segment_->on_search = [this] {
      const std::size_t batch = segment_->passes().back().batch;
      const Milliseconds took(0.5 + static_cast<double>(batch) * query_ms_);
      clock_.Advance(std::chrono::duration_cast<Clock::Duration>(took));
      if (on_search_) on_search_();
      const std::lock_guard lock(mutex_);
      ++searches_;
      searched_.notify_one();
    };
  }
  ~SearchTimesTest() override { executor_.Stop(); }

  // The queries of each search, once there were so many searches and nothing is left to measure.
  std::vector<std::size_t> Batches(std::size_t searches) {
    {
      std::unique_lock lock(mutex_);
      searched_.wait(lock, [&] { return searches_ >= searches; });
    }
    // A measurement that should not come would be queued or done once this task is answered:
    // answers are handed out in order, and each begins the next measurement.
    auto task = std::make_unique<SearchTask>();
    task->snapshot = snapshot_;
    task->vectors = RandomMatrix(2, kDim, 7);
    task->queries.resize(2);
    task->priority = Priority::kBulk;
    task->arrived_at = clock_.Now();
    task->deadline = Clock::TimePoint::max();
    task->done = answers_.For(next_);
    EXPECT_TRUE(executor_.Submit(std::move(task)).ok());
    EXPECT_TRUE(answers_.Await(next_++).answer.ok());
    EXPECT_EQ(executor_.counts().queue_bytes, 0U);
    std::vector<std::size_t> batches;
    for (const FakeSegment::Pass& pass : segment_->passes()) batches.push_back(pass.batch);
    const auto own = std::ranges::find(batches, 2U);
    EXPECT_NE(own, batches.end());
    if (own != batches.end()) batches.erase(own);
    return batches;
  }

  static auto Takes(std::uint32_t searches, double ms) {
    return AllOf(Field(&CostEstimator::PassTime::searches, searches),
                 Field(&CostEstimator::PassTime::ms, DoubleNear(ms, 0.01 * ms)));
  }

  std::function<void()> on_search_;  // set before the first one

  static constexpr std::size_t kDim = 5;
  FakeClock clock_;
  std::atomic<double> query_ms_;
  std::shared_ptr<FakeSegment> segment_;
  SnapshotPtr snapshot_ =
      std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(40, kDim, 1), &segment_));
  Answers answers_;
  int next_ = 0;
  std::mutex mutex_;  // guards searches_
  std::condition_variable searched_;
  std::size_t searches_ = 0;
  std::atomic<int> reports_ = 0;
  Executor executor_{{},
                     ServedBy{{"cpu", "scan-fake", "a test, 1 thread"}, "the test says so"},
                     clock_,
                     [this](const Executor::BatchReport&) { ++reports_; }};
  SearchTimes times_{executor_, clock_};
};

TEST_F(SearchTimesTest, MeasuresASnapshotOnceAndCountsNothing) {
  EXPECT_THAT(executor_.ListPassTimes(*snapshot_), IsEmpty());
  times_.Look({snapshot_});
  const auto expected = ElementsAre(1, 1, 1, 8, 8, 8, 64, 64, 64, 256, 256, 256);
  EXPECT_THAT(Batches(12), expected);
  EXPECT_EQ(executor_.counts().queries, 2U) << "those of the task alone";
  EXPECT_EQ(executor_.counts().batches, 1U);
  EXPECT_EQ(reports_, 1);
  times_.Look({snapshot_});
  EXPECT_EQ(Batches(13).size(), 13U);
}

TEST_F(SearchTimesTest, SaysWhatPassesOfEachSizeTake) {
  times_.Look({snapshot_});
  Batches(12);
  EXPECT_THAT(executor_.ListPassTimes(*snapshot_),
              ElementsAre(Takes(1, 0.51), Takes(2, 0.52), Takes(8, 0.58), Takes(64, 1.14),
                          Takes(256, 3.06)));
}

TEST_F(SearchTimesTest, MeasuresAgainOnceTheIndexIsBuilt) {
  segment_->built = false;
  query_ms_ = 0.2;
  times_.Look({snapshot_});
  Batches(11);
  EXPECT_THAT(executor_.ListPassTimes(*snapshot_), Contains(Takes(64, 13.3)));
  segment_->built = true;
  query_ms_ = 0.01;
  times_.Look({snapshot_});
  Batches(24);
  EXPECT_THAT(executor_.ListPassTimes(*snapshot_), Contains(Takes(64, 1.14)));
}

class SlowSearchTimesTest : public SearchTimesTest {
 protected:
  SlowSearchTimesTest() : SearchTimesTest(2.4) {}
};

TEST_F(SlowSearchTimesTest, LeavesOutWhatWouldTakeTooLong) {
  times_.Look({snapshot_});
  EXPECT_THAT(Batches(7), ElementsAre(1, 1, 1, 8, 8, 8, 64));
}

TEST_F(SearchTimesTest, LeavesSnapshotsThatAreNoLongerServed) {
  on_search_ = [this] { times_.Look({}); };
  times_.Look({snapshot_});
  EXPECT_THAT(Batches(1), ElementsAre(1));
}

TEST_F(SearchTimesTest, MeasuresNothingWhereNoRowCanBeFound) {
  const auto none = std::make_shared<Snapshot>(*snapshot_);
  none->searchable = std::make_shared<const RowMask>(40);
  times_.Look({none});
  EXPECT_THAT(Batches(0), IsEmpty());
}

}  // namespace
}  // namespace simile::engine
