#include "engine/queue/executor.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/queue/executor_fixture.h"

namespace simile::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;

std::vector<std::size_t> BatchSizes(const FakeSegment& segment) {
  std::vector<std::size_t> sizes;
  for (const FakeSegment::Pass& pass : segment.passes()) sizes.push_back(pass.batch);
  return sizes;
}

TEST_F(ExecutorTest, AnswersWithHitsAndAReceipt) {
  segment_->on_search = [this] { clock_.Advance(microseconds(250)); };
  Start();
  auto task = Task(1, 2);
  task->arrived_at -= microseconds(100);
  Submit(std::move(task));
  const auto answer = answers_.Await(1).answer;
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(HitsOf(answer), Expected(1, 2));
  EXPECT_EQ(answer->receipt.served_by->info.name, "cpu");
  EXPECT_THAT(answer->receipt.engines, ElementsAre("scan-fake"));
  EXPECT_EQ(answer->receipt.served_by->info.device, "a test, 1 thread");
  EXPECT_EQ(answer->receipt.served_by->reason, "the test says so");
  EXPECT_EQ(answer->receipt.batch_size, 2U);
  EXPECT_EQ(answer->receipt.queue_us, 100U);
  EXPECT_EQ(answer->receipt.compute_us, 250U);
  EXPECT_EQ(answer->receipt.cost.rows_scanned, 2U * 20);
  EXPECT_EQ(answer->receipt.cost.rows_rescored, 2U);
}

FallbackBackend Fallback(const std::string& reason) {
  return std::make_shared<const ServedBy>(
      ServedBy{{"other", "scan-other", "another test"}, reason});
}

TEST_F(ExecutorTest, NamesTheFallbackBackendOnReceiptAndReport) {
  std::vector<std::string> backends;
  bool failing = true;
  segment_->spoil = [&](SearchResult& result) {
    if (failing) result.SetFallback(Fallback("it failed"));
  };
  Start(64, 16, [&](const Executor::BatchReport& report) {
    backends.emplace_back(report.backend);
    failing = false;
  });
  Submit(Task(1));
  const auto fallen = answers_.Await(1).answer;
  ASSERT_TRUE(fallen.ok()) << fallen.status();
  EXPECT_EQ(fallen->receipt.served_by->info.name, "other");
  EXPECT_EQ(fallen->receipt.served_by->info.device, "another test");
  EXPECT_EQ(fallen->receipt.served_by->reason, "it failed");
  Submit(Task(2));
  const auto usual = answers_.Await(2).answer;
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(usual->receipt.served_by->info.name, "cpu");
  EXPECT_EQ(usual->receipt.served_by->reason, "the test says so");
  executor_->Stop();
  EXPECT_THAT(backends, ElementsAre("other", "cpu"));
}

TEST_F(ExecutorTest, ReportsTheBytesOnTheDevice) {
  read_device_memory_ = [] {
    return std::vector<DeviceMemory>{{"rows-fp16", 100, 200}, {"workspace", 7, 7}};
  };
  Start();
  Submit(Task(1));
  const auto answer = answers_.Await(1).answer;
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->receipt.device_bytes, 107U);
  EXPECT_EQ(answer->receipt.device_bytes_peak, 207U);
}

TEST_F(ExecutorTest, BatchesTasksThatArriveDuringAPass) {
  Start();
  BlockWithTask(1);
  Submit(Task(2, 2));
  Submit(Task(3, 3));
  gate_.Open();
  EXPECT_EQ(HitsOf(answers_.Await(1).answer), Expected(1));
  const auto second = answers_.Await(2).answer;
  const auto third = answers_.Await(3).answer;
  EXPECT_EQ(HitsOf(second), Expected(2, 2));
  EXPECT_EQ(HitsOf(third), Expected(3, 3));
  EXPECT_EQ(second->receipt.batch_size, 5U);
  EXPECT_EQ(second->receipt.cost.rows_scanned, 2U * 20);
  EXPECT_EQ(third->receipt.cost.rows_scanned, 3U * 20);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 5));
}

TEST_F(ExecutorTest, GivesEachQueryItsOwnKMaskExclusionsAndThreshold) {
  Start();
  BlockWithTask(1);
  auto mask = std::make_shared<RowMask>(20);
  mask->Allow(4);
  mask->Allow(9);
  auto masked = Task(2);
  masked->queries[0].mask = mask;
  const Row best = Expected(3)[0][0].row;
  auto excluding = Task(3);
  excluding->queries[0].excluded_rows = {best};
  auto strict = Task(4);
  strict->queries[0].score_threshold = Expected(4)[0][1].score;
  auto narrow = Task(5);
  narrow->queries[0].k = 1;
  Submit(std::move(masked));
  Submit(std::move(excluding));
  Submit(std::move(strict));
  Submit(std::move(narrow));
  gate_.Open();
  EXPECT_EQ(HitsOf(answers_.Await(2).answer)[0].size(), 2U);
  EXPECT_EQ(HitsOf(answers_.Await(3).answer)[0][0], Expected(3)[0][1]);
  EXPECT_EQ(HitsOf(answers_.Await(4).answer)[0].size(), 2U);
  EXPECT_EQ(HitsOf(answers_.Await(5).answer)[0].size(), 1U);
  EXPECT_EQ(answers_.Await(5).answer->receipt.batch_size, 4U);
}

TEST_F(ExecutorTest, ReadsALoneTasksQueriesWhereTheyAre) {
  Start();
  auto task = Task(1, 3);
  const float* const queries = task->vectors.view().data();
  Submit(std::move(task));
  answers_.Await(1);
  EXPECT_EQ(segment_->passes()[0].queries, queries);
}

TEST_F(ExecutorTest, ReusesOneMatrixForGatheredBatches) {
  Start();
  BlockWithTask(1);
  Submit(Task(2, 2));
  Submit(Task(3, 2));
  gate_.Open();
  answers_.Await(3);
  gate_.Close();
  Submit(Task(4));
  gate_.AwaitArrivals(3);
  Submit(Task(5, 1));
  Submit(Task(6, 2));
  gate_.Open();
  EXPECT_EQ(HitsOf(answers_.Await(6).answer), Expected(6, 2));
  const auto passes = segment_->passes();
  ASSERT_EQ(passes.size(), 4U);
  EXPECT_EQ(passes[3].queries, passes[1].queries);
}

TEST_F(ExecutorTest, NeverMixesSnapshotsInABatch) {
  Start();
  std::shared_ptr<FakeSegment> other_segment;
  const SnapshotPtr other =
      std::make_shared<const Snapshot>(SnapshotOf(RandomDataset(8, 3, 5), &other_segment));
  BlockWithTask(1);
  Submit(Task(2));
  auto task = Task(3);
  task->snapshot = other;
  task->vectors = RandomMatrix(1, 3, 8);
  Submit(std::move(task));
  Submit(Task(4));
  gate_.Open();
  EXPECT_EQ(answers_.Await(2).answer->receipt.batch_size, 2U);
  EXPECT_EQ(HitsOf(answers_.Await(4).answer), Expected(4));
  EXPECT_EQ(answers_.Await(3).answer->receipt.cost.rows_scanned, 8U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 2));
  EXPECT_THAT(BatchSizes(*other_segment), ElementsAre(1));
}

TEST_F(ExecutorTest, KeepsBatchesWithinTheirMaximum) {
  Start(64, 4);
  BlockWithTask(1);
  Submit(Task(2, 3));
  Submit(Task(3, 2));
  Submit(Task(4, 2));
  gate_.Open();
  answers_.Await(4);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 3, 4));
}

TEST_F(ExecutorTest, RefusesWhenTheQueueIsFullAndNeverCallsTheRefused) {
  Start(4);
  BlockWithTask(1);
  Submit(Task(2, 3));
  const absl::Status status = executor_->Submit(Task(3, 2));
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kQueueFull);
  EXPECT_EQ(status.message(), "3 queries wait already and the queue holds 4: no space for 2 more");
  EXPECT_EQ(base::RetryAfterOf(status), DrainRate::kUnmeasured);
  EXPECT_EQ(executor_->counts().rejected, 2U);
  EXPECT_EQ(executor_->counts().queue_depth, 3U);
  Submit(Task(4, 1));
  gate_.Open();
  answers_.Await(4);
  executor_->Stop();
  EXPECT_EQ(answers_.CountOf(3), 0U);
  EXPECT_EQ(executor_->counts().queue_depth, 0U);
}

TEST_F(ExecutorTest, SaysWhenAFullQueueShouldBeEmpty) {
  segment_->on_search = [this] {
    gate_.Pass();
    clock_.Advance(milliseconds(50));
  };
  Start(4);
  Submit(Task(1));
  answers_.Await(1);
  gate_.Close();
  Submit(Task(2));
  gate_.AwaitArrivals(2);
  Submit(Task(3, 4));
  const absl::Status status = executor_->Submit(Task(4));
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kQueueFull);
  // One search under way and four that wait, of 50 ms each.
  EXPECT_EQ(base::RetryAfterOf(status), milliseconds(250));
  gate_.Open();
  answers_.Await(3);
}

TEST_F(ExecutorTest, ComputesNothingForATaskThatExpiredInTheQueue) {
  Start();
  BlockWithTask(1);
  auto task = Task(2, 2);
  task->deadline = clock_.Now() + milliseconds(1'500);
  Submit(std::move(task));
  Submit(Task(3));
  clock_.Advance(milliseconds(1'500));
  gate_.Open();
  EXPECT_EQ(answers_.Await(2).answer.status(),
            base::Error(base::ErrorReason::kDeadlineExceeded,
                        "the deadline passed after 1,500 ms in the queue; nothing was computed"));
  EXPECT_TRUE(answers_.Await(3).answer.ok());
  EXPECT_EQ(executor_->counts().expired, 2U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 1));
}

// The gate stays closed, so only the completion thread can have answered.
TEST_F(ExecutorTest, AnswersAnExpiredTaskWhileThePassBeforeItStillRuns) {
  Start();
  BlockWithTask(1);
  auto task = Task(2);
  task->deadline = clock_.Now() + milliseconds(1);
  Submit(std::move(task));
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  EXPECT_EQ(answers_.CountOf(1), 0U);
  gate_.Open();
  EXPECT_TRUE(answers_.Await(1).answer.ok());
}

TEST_F(ExecutorTest, AnswersATaskWithoutDeadline) {
  Start();
  auto task = Task(1);
  task->deadline = Clock::TimePoint::max();
  Submit(std::move(task));
  EXPECT_TRUE(answers_.Await(1).answer.ok());
}

TEST_F(ExecutorTest, ComputesNothingForACancelledTask) {
  Start();
  BlockWithTask(1);
  auto cancelled = Task(2, 2);
  cancelled->cancelled = [] { return true; };
  auto waiting = Task(3);
  waiting->cancelled = [] { return false; };
  Submit(std::move(cancelled));
  Submit(std::move(waiting));
  gate_.Open();
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()), base::ErrorReason::kCancelled);
  EXPECT_EQ(HitsOf(answers_.Await(3).answer), Expected(3));
  EXPECT_EQ(executor_->counts().cancelled, 2U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 1));
}

TEST_F(ExecutorTest, RunsNoPassWhenAllOfABatchWereCancelled) {
  Start();
  auto task = Task(1);
  task->cancelled = [] { return true; };
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kCancelled);
  executor_->Stop();
  EXPECT_EQ(executor_->counts().batches, 0U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre());
}

TEST_F(ExecutorTest, GivesABackendErrorToEveryTaskOfTheBatch) {
  std::shared_ptr<FakeSegment> failing;
  snapshot_ = std::make_shared<const Snapshot>(SnapshotOf(RandomDataset(20, kDim, 99), &failing));
  failing->on_search = [this] { gate_.Pass(); };
  failing->status = absl::UnavailableError("the device is lost");
  Start();
  BlockWithTask(1);
  Submit(Task(2));
  Submit(Task(3));
  gate_.Open();
  for (int number = 1; number <= 3; ++number) {
    EXPECT_EQ(answers_.Await(number).answer.status(), failing->status);
  }
  EXPECT_THAT(BatchSizes(*failing), ElementsAre(1, 2));
}

TEST_F(ExecutorTest, SurvivesABatchThereIsNoMemoryFor) {
  bool enough = false;
  segment_->on_search = [&] {
    if (!std::exchange(enough, true)) throw std::bad_alloc();
  };
  Start();
  Submit(Task(1));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kOutOfMemory);
  Submit(Task(2));
  EXPECT_EQ(HitsOf(answers_.Await(2).answer), Expected(2));
}

TEST_F(ExecutorTest, AnswersOnOneThreadThatNeitherSubmitsNorDispatches) {
  std::thread::id dispatcher;
  segment_->on_search = [&] { dispatcher = std::this_thread::get_id(); };
  Start();
  Submit(Task(1));
  const std::thread::id first = answers_.Await(1).thread;
  auto cancelled = Task(2);
  cancelled->cancelled = [] { return true; };
  Submit(std::move(cancelled));
  EXPECT_EQ(answers_.Await(2).thread, first);
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_NE(first, dispatcher);
}

TEST_F(ExecutorTest, ReportsAPassBeforeItsAnswersAreHandedOut) {
  std::vector<Executor::BatchReport> reports;
  Start(64, 16, [&](const Executor::BatchReport& report) { reports.push_back(report); });
  segment_->on_search = [this] {
    gate_.Pass();
    clock_.Advance(microseconds(70));
  };
  BlockWithTask(1);
  Submit(Task(2, 3));
  clock_.Advance(microseconds(30));
  Submit(Task(3, 1));
  gate_.Open();
  answers_.Await(2);  // orders this thread after the report
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].batch_size, 4U);
  EXPECT_EQ(reports[1].compute_us, 70U);
  EXPECT_THAT(reports[1].queue_us, ElementsAre(100, 70));
  EXPECT_EQ(executor_->counts().batches, 2U);
  EXPECT_EQ(executor_->counts().queries, 5U);
}

TEST_F(ExecutorTest, ReleasesASnapshotOnceItsTaskIsAnswered) {
  Start();
  Submit(Task(1));
  answers_.Await(1);
  executor_->Stop();
  EXPECT_EQ(snapshot_.use_count(), 1);
}

// Makes the task's query one that no list of best rows proves: the same vector is its positive and
// its negative example, so that the rows nearest to it score worst.
std::unique_ptr<SearchTask> MakeHard(std::unique_ptr<SearchTask> task) {
  const MatrixView vectors = task->vectors.view();
  std::copy_n(vectors.PaddedRow(0), vectors.padded_dim(), task->vectors.MutableRow(1));
  task->queries.resize(1);
  ResolvedQuery& query = task->queries[0];
  query.vector_count = 2;
  query.scoring = Scoring::kBestScore;
  query.weights = {1, 1};
  query.positive_count = 1;
  return task;
}

// Such queries over so many rows that the first list holds only a few of them.
class HardQueriesTest : public ExecutorTest {
 protected:
  HardQueriesTest() { Start(); }

  // Starts a batch of a hard task, number 2, and a plain one, number 3.
  void RunTogether() {
    BlockWithTask(1);
    auto hard = MakeHard(Task(2, 2));
    hard->snapshot = large_;
    auto plain = Task(3);
    plain->snapshot = large_;
    Submit(std::move(hard));
    Submit(std::move(plain));
    gate_.Open();
  }

  std::shared_ptr<FakeSegment> segment_of_large_;
  const SnapshotPtr large_ = std::make_shared<const Snapshot>(
      SnapshotOf(RandomDataset(20'000, kDim, 98), &segment_of_large_));
};

TEST_F(ExecutorTest, AnswersQueriesOfSeveralRoundsBesidePlainOnes) {
  Start();
  BlockWithTask(1);
  Submit(Task(2));
  Submit(MakeHard(Task(3, 2)));
  gate_.Open();
  EXPECT_EQ(HitsOf(answers_.Await(2).answer), Expected(2));
  const auto hard = answers_.Await(3).answer;
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_EQ(hard->results[0].hits.size(), 3U);
  EXPECT_EQ(hard->receipt.batch_size, 2U);
}

TEST_F(HardQueriesTest, AreAbandonedBetweenRoundsWhenTheirDeadlineHasPassed) {
  segment_of_large_->on_search = [this] { clock_.Advance(std::chrono::seconds(6)); };
  RunTogether();
  EXPECT_EQ(answers_.Await(2).answer.status(),
            base::Error(base::ErrorReason::kDeadlineExceeded,
                        "the deadline passed before the answer was found"));
  EXPECT_TRUE(answers_.Await(3).answer.ok()) << "it had its answer after the first round";
  EXPECT_EQ(segment_of_large_->passes().size(), 2U);
}

TEST_F(HardQueriesTest, AreAbandonedBetweenRoundsWhenTheirCallerIsGone) {
  std::atomic<bool> gone = false;
  segment_of_large_->on_search = [&gone] { gone = true; };
  auto hard = MakeHard(Task(2, 2));
  hard->snapshot = large_;
  hard->cancelled = [&gone] { return gone.load(); };
  Submit(std::move(hard));
  EXPECT_EQ(
      answers_.Await(2).answer.status(),
      base::Error(base::ErrorReason::kCancelled, "the caller gave up before the answer was found"));
  EXPECT_EQ(segment_of_large_->passes().size(), 1U);
}

TEST_F(HardQueriesTest, AreAbandonedWhileEveryRowIsScored) {
  std::atomic<int> scored = 0;
  segment_of_large_->on_score = [&] {
    ++scored;
    clock_.Advance(std::chrono::seconds(6));
    return absl::OkStatus();
  };
  auto task = Task(2, 6);
  task->snapshot = large_;
  task->queries.resize(3);
  // The vectors cancel out, so that there is no list to search for first.
  for (std::size_t i = 0; i < 3; ++i) {
    const MatrixView vectors = task->vectors.view();
    std::copy_n(vectors.PaddedRow(2 * i), vectors.padded_dim(),
                task->vectors.MutableRow(2 * i + 1));
    ResolvedQuery& query = task->queries[i];
    query.vector_count = 2;
    query.scoring = Scoring::kSumScores;
    query.weights = {1, 1};
    query.positive_count = 1;
  }
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  EXPECT_EQ(scored, 2) << "the third began after the deadline";
}

TEST_F(HardQueriesTest, DoNotDelayTheAnswersOfOthers) {
  Gate second_round;
  second_round.Close();
  std::atomic<int> rounds = 0;
  segment_of_large_->on_search = [&] {
    if (++rounds == 2) second_round.Pass();
  };
  RunTogether();
  EXPECT_TRUE(answers_.Await(3).answer.ok());
  second_round.Open();
  EXPECT_TRUE(answers_.Await(2).answer.ok());
}

TEST_F(HardQueriesTest, DoNotFailOtherTasks) {
  segment_of_large_->on_score = [] { return absl::UnavailableError("the device is gone"); };
  RunTogether();
  EXPECT_EQ(answers_.Await(2).answer.status(), absl::UnavailableError("the device is gone"));
  EXPECT_TRUE(answers_.Await(3).answer.ok());
}

TEST_F(HardQueriesTest, NameTheFallbackBackendThatScoredForThemOnly) {
  segment_of_large_->scorer = Fallback("it failed at scoring");
  RunTogether();
  const auto hard = answers_.Await(2).answer;
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_EQ(hard->receipt.served_by->info.name, "other");
  EXPECT_EQ(hard->receipt.served_by->reason, "it failed at scoring");
  const auto plain = answers_.Await(3).answer;
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->receipt.served_by->info.name, "cpu");
}

TEST_F(HardQueriesTest, NameEveryRowAsTheEngine) {
  RunTogether();
  const auto answer = answers_.Await(2).answer;
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->receipt.engines, ElementsAre("every-row"));
  EXPECT_GE(answer->receipt.cost.rows_scanned, 20'000U);
  EXPECT_GT(answer->receipt.cost.rounds, 0U);
}

}  // namespace
}  // namespace simile::engine
