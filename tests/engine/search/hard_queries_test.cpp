#include "engine/search/hard_queries.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/sample_data.h"
#include "engine/search/row_scorer.h"

namespace simile::engine {
namespace {

using std::chrono::milliseconds;

// Slices of 20 ms over a fake segment.
class HardSliceTest : public testing::Test {
 protected:
  static constexpr std::size_t kDim = 64;
  static constexpr std::size_t kRows = 40'000;

  // A task of one query that compares the best `candidates` rows.
  SearchTask& AddTask(std::uint32_t k, std::uint32_t candidates) {
    SearchTask& task = *tasks_.emplace_back(std::make_unique<SearchTask>());
    task.snapshot = snapshot_;
    task.vectors = RandomMatrix(1, kDim, tasks_.size());
    task.queries.resize(1);
    task.queries[0].k = k;
    task.queries[0].score_threshold = -2;
    task.queries[0].diversity = Diversity{.lambda = 0.5F, .candidates = candidates};
    task.deadline = Clock::TimePoint::max();
    TaskProgress& progress = *progress_.emplace_back(std::make_unique<TaskProgress>());
    progress.task = &task;
    progress.results.resize(1);
    return task;
  }

  HardQueries::Report RunSlice() {
    std::vector<TaskProgress*> tasks;
    for (const auto& progress : progress_) {
      if (!progress->ended()) tasks.push_back(progress.get());
    }
    constexpr milliseconds kSlice{20};
    HardQueries::Report report;
    queries_.RunSlice(tasks,
                      {.end = clock_.Now() + kSlice,
                       .length = kSlice,
                       .searches_max = searches_max_,
                       .yield = yield_},
                      report);
    return report;
  }

  std::shared_ptr<FakeSegment> segment_;
  const SnapshotPtr snapshot_ =
      std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(kRows, kDim, 1), &segment_));
  FakeClock clock_;
  std::atomic<bool> yield_ = false;
  std::uint32_t searches_max_ = 16;
  SearchWorkspace workspace_;
  std::vector<std::unique_ptr<SearchTask>> tasks_;
  std::vector<std::unique_ptr<TaskProgress>> progress_;
  HardQueries queries_{snapshot_, workspace_, clock_};
};

TEST_F(HardSliceTest, FinishesWhatHasBegunBeforeItSearchesForOthers) {
  segment_->on_search = [this] { clock_.Advance(milliseconds(25)); };
  AddTask(3, 10);
  EXPECT_EQ(RunSlice().searches.size(), 1U);
  EXPECT_FALSE(progress_[0]->ended()) << "its search took all of the slice";
  AddTask(3, 10);
  EXPECT_EQ(RunSlice().searches.size(), 1U) << "after the first task's piece there was time";
  EXPECT_TRUE(progress_[0]->ended());
  EXPECT_FALSE(progress_[1]->ended());
}

// The first needs a second round, as its vector is also its negative example; the other has much
// to compare after the first.
TEST_F(HardSliceTest, SearchesForTheOldestBeforeItWorksOnYoungerOnes) {
  SearchTask& oldest = AddTask(3, 10);
  oldest.vectors = RandomMatrix(2, kDim, 1);
  std::copy_n(oldest.vectors.view().PaddedRow(0), oldest.vectors.view().padded_dim(),
              oldest.vectors.MutableRow(1));
  oldest.queries[0].vector_count = 2;
  oldest.queries[0].scoring = Scoring::kBestScore;
  oldest.queries[0].weights = {1, 1};
  oldest.queries[0].positive_count = 1;
  oldest.queries[0].diversity.reset();
  AddTask(6, 10'000);
  std::size_t scored = 0;
  segment_->on_score = [&] {
    ++scored;
    clock_.Advance(milliseconds(25));
    return absl::OkStatus();
  };
  while (!progress_[0]->ended()) RunSlice();
  const std::size_t ended_at = scored;
  EXPECT_GE(segment_->passes().size(), 2U);
  EXPECT_FALSE(progress_[1]->ended());
  while (!progress_[1]->ended()) RunSlice();
  EXPECT_EQ(scored - ended_at, 5U) << "none of the younger one's pieces came before";
}

TEST_F(HardSliceTest, LeavesASmallSearchToTheNextSlice) {
  searches_max_ = 1;
  segment_->on_search = [this] { clock_.Advance(milliseconds(1)); };
  segment_->on_score = [this] {
    clock_.Advance(milliseconds(16));
    return absl::OkStatus();
  };
  AddTask(2, 10);
  AddTask(2, 10);
  EXPECT_EQ(RunSlice().searches.size(), 1U) << "3 ms are left of 20";
  EXPECT_TRUE(progress_[0]->ended());
  EXPECT_EQ(RunSlice().searches.size(), 1U);
  EXPECT_TRUE(progress_[1]->ended());
}

TEST_F(HardSliceTest, DoesNotMeasureAFailedSearch) {
  segment_->status = absl::UnavailableError("the device is lost");
  AddTask(3, 10);
  const HardQueries::Report report = RunSlice();
  EXPECT_TRUE(report.searches.empty());
  EXPECT_EQ(report.fallback, nullptr);
  EXPECT_EQ(progress_[0]->status, segment_->status);
}

TEST_F(HardSliceTest, CountsAQueryThatWasOnlyWorkedOn) {
  segment_->on_search = [this] { clock_.Advance(milliseconds(25)); };
  AddTask(3, 10);
  RunSlice();
  const HardQueries::Report report = RunSlice();
  EXPECT_TRUE(report.searches.empty());
  EXPECT_EQ(report.query_count, 1U);
}

TEST_F(HardSliceTest, MeasuresScoresByLargePiecesOnly) {
  segment_->on_score = [this] {
    clock_.Advance(milliseconds(1));
    return absl::OkStatus();
  };
  AddTask(3, 10);
  const HardQueries::Report little = RunSlice();
  EXPECT_EQ(progress_[0]->work_in_slice, milliseconds(2));
  EXPECT_EQ(little.products, 0U);
  EXPECT_EQ(little.scoring, Clock::Duration(0));
  AddTask(6, 10'000);
  const HardQueries::Report much = RunSlice();
  EXPECT_EQ(progress_[1]->work_in_slice, milliseconds(5));
  EXPECT_EQ(much.products, 5U * 10'000 * kDim) << "each row chosen but the last, with all";
  EXPECT_EQ(much.scoring, milliseconds(5));
}

TEST_F(HardSliceTest, MarksTheTasksThatItRan) {
  segment_->on_search = [this] { clock_.Advance(milliseconds(25)); };
  AddTask(3, 10);
  RunSlice();
  progress_[0]->in_slice = false;
  segment_->on_score = [this] {
    clock_.Advance(milliseconds(25));
    return absl::OkStatus();
  };
  AddTask(3, 10);
  RunSlice();
  EXPECT_TRUE(progress_[0]->in_slice);
  EXPECT_FALSE(progress_[1]->in_slice) << "there was no time for it";
}

}  // namespace
}  // namespace simile::engine
