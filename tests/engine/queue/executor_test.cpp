#include "engine/queue/executor.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
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
  EXPECT_EQ(ToHits(answer), Expected(1, 2));
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

TEST_F(ExecutorTest, ReportsTheDevicesTimeToTasksThatAskForIt) {
  segment_->device_us = 12.4;
  Start();
  BlockWithTask(1);
  Submit(Task(2));
  auto timed = Task(3, 2);
  timed->time_device = true;
  Submit(std::move(timed));
  gate_.Open();
  EXPECT_EQ(answers_.Await(1).answer->receipt.device_us, std::nullopt);
  EXPECT_EQ(answers_.Await(2).answer->receipt.device_us, std::nullopt);
  EXPECT_EQ(answers_.Await(3).answer->receipt.device_us, 12U);
  ASSERT_THAT(BatchSizes(*segment_), ElementsAre(1, 3)) << "in one pass";
}

TEST_F(ExecutorTest, ReportsNoDeviceTimeWhereNoDeviceAnswers) {
  Start();
  auto timed = Task(1);
  timed->time_device = true;
  Submit(std::move(timed));
  EXPECT_EQ(answers_.Await(1).answer->receipt.device_us, std::nullopt);
}

TEST_F(ExecutorTest, BatchesTasksThatArriveDuringAPass) {
  Start();
  BlockWithTask(1);
  Submit(Task(2, 2));
  Submit(Task(3, 3));
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1));
  const auto second = answers_.Await(2).answer;
  const auto third = answers_.Await(3).answer;
  EXPECT_EQ(ToHits(second), Expected(2, 2));
  EXPECT_EQ(ToHits(third), Expected(3, 3));
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
  EXPECT_EQ(ToHits(answers_.Await(2).answer)[0].size(), 2U);
  EXPECT_EQ(ToHits(answers_.Await(3).answer)[0][0], Expected(3)[0][1]);
  EXPECT_EQ(ToHits(answers_.Await(4).answer)[0].size(), 2U);
  EXPECT_EQ(ToHits(answers_.Await(5).answer)[0].size(), 1U);
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
  EXPECT_EQ(ToHits(answers_.Await(6).answer), Expected(6, 2));
  const auto passes = segment_->passes();
  ASSERT_EQ(passes.size(), 4U);
  EXPECT_EQ(passes[3].queries, passes[1].queries);
}

TEST_F(ExecutorTest, NeverMixesSnapshotsInABatch) {
  Start();
  std::shared_ptr<FakeSegment> other_segment;
  const SnapshotPtr other =
      std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(8, 3, 5), &other_segment));
  BlockWithTask(1);
  Submit(Task(2));
  auto task = Task(3);
  task->snapshot = other;
  task->vectors = RandomMatrix(1, 3, 8);
  Submit(std::move(task));
  Submit(Task(4));
  gate_.Open();
  EXPECT_EQ(answers_.Await(2).answer->receipt.batch_size, 2U);
  EXPECT_EQ(ToHits(answers_.Await(4).answer), Expected(4));
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
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 4, 3));
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
  std::printf("%" PRIu64 " queries left the queue uncomputed\n", executor_->counts().expired);
}

// The gate stays closed, so only a completer can have answered.
TEST_F(ExecutorTest, AnswersAnExpiredTaskWhileThePassBeforeItStillRuns) {
  Start();
  BlockWithTask(1);
  auto task = Task(2);
  task->deadline = clock_.Now() + milliseconds(1);
  Submit(std::move(task));
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  EXPECT_EQ(answers_.CountAnswers(1), 0U);
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
  std::stop_source gone;
  cancelled->cancelled = gone.get_token();
  auto waiting = Task(3);
  const std::stop_source stays;
  waiting->cancelled = stays.get_token();
  Submit(std::move(cancelled));
  Submit(std::move(waiting));
  EXPECT_EQ(executor_->counts().queue_depth, 3U);
  gone.request_stop();
  EXPECT_EQ(executor_->counts().queue_depth, 1U) << "it leaves the queue at once";
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()), base::ErrorReason::kCancelled);
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(3).answer), Expected(3));
  EXPECT_EQ(executor_->counts().cancelled, 2U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(1, 1));
  std::printf("%" PRIu64 " queries left the queue uncomputed\n", executor_->counts().cancelled);
}

TEST_F(ExecutorTest, RunsNothingForATaskThatIsCancelledBeforeItIsQueued) {
  Start();
  auto task = Task(1);
  std::stop_source gone;
  gone.request_stop();
  task->cancelled = gone.get_token();
  EXPECT_EQ(base::ReasonOf(executor_->Submit(std::move(task))), base::ErrorReason::kCancelled);
  executor_->Stop();
  EXPECT_EQ(answers_.CountAnswers(1), 0U);
  EXPECT_EQ(executor_->counts().batches, 0U);
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre());
}

TEST_F(ExecutorTest, GivesABackendErrorToEveryTaskOfTheBatch) {
  std::shared_ptr<FakeSegment> failing;
  snapshot_ = std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(20, kDim, 99), &failing));
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
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
}

TEST_F(ExecutorTest, AnswersOnAThreadThatNeitherSubmitsNorDispatches) {
  std::thread::id dispatcher;
  segment_->on_search = [&] { dispatcher = std::this_thread::get_id(); };
  Start();
  Submit(Task(1));
  const std::thread::id thread = answers_.Await(1).thread;
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_NE(thread, dispatcher);
}

TEST_F(ExecutorTest, BuildsLargeRepliesOnAThreadOfTheirOwn) {
  Start();
  Gate large_reply;
  large_reply.Close();
  auto large = Task(1);
  large->reply_bytes_estimate = 10U << 20;
  large->done = [&, done = large->done](absl::StatusOr<SearchAnswer> answer) {
    large_reply.Pass();
    done(std::move(answer));
  };
  Submit(std::move(large));
  large_reply.AwaitArrivals(1);
  Submit(Task(2));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2)) << "it is not behind the large one";
  large_reply.Open();
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1));
}

TEST_F(ExecutorTest, RunsLittleWorkOnTheThreadThatFindsIt) {
  std::thread::id searcher;
  segment_->on_search = [&] { searcher = std::this_thread::get_id(); };
  Start();
  EXPECT_FALSE(RunHere()) << "there is nothing to run";
  Gather(Task(1));
  Gather(Task(2, 3));
  EXPECT_EQ(answers_.CountAnswers(1), 0U);
  EXPECT_TRUE(RunHere());
  EXPECT_EQ(searcher, std::this_thread::get_id());
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, 3));
  EXPECT_EQ(answers_.Await(1).thread, std::this_thread::get_id());
  EXPECT_THAT(BatchSizes(*segment_), ElementsAre(4)) << "what arrives together runs together";
}

TEST_F(ExecutorTest, AnswersThoseThatItRefusesOfWhatArrivesTogether) {
  Start(2);
  BlockWithTask(1);
  for (int number = 2; number <= 4; ++number) Gather(Task(number));
  EXPECT_EQ(executor_->counts().queue_depth, 0U) << "they are not queued yet";
  EXPECT_TRUE(RunHere());
  EXPECT_EQ(base::ReasonOf(answers_.Await(4).answer.status()), base::ErrorReason::kQueueFull);
  EXPECT_EQ(answers_.Await(4).thread, std::this_thread::get_id());
  EXPECT_EQ(executor_->counts().queue_depth, 2U);
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
  EXPECT_EQ(ToHits(answers_.Await(3).answer), Expected(3));
}

TEST_F(ExecutorTest, DoesNotQueueArrivalsWhoseCallersAreGoneOrWhoseDeadlineHasPassed) {
  Start(1);
  BlockWithTask(1);
  Submit(Task(2));  // the queue is full
  std::stop_source caller;
  auto cancelled = Task(3);
  cancelled->cancelled = caller.get_token();
  Gather(std::move(cancelled));
  caller.request_stop();
  auto expired = Task(4);
  expired->deadline = clock_.Now() + milliseconds(5);
  Gather(std::move(expired));
  clock_.Advance(milliseconds(5));
  EXPECT_TRUE(RunHere());
  EXPECT_TRUE(absl::IsCancelled(answers_.Await(3).answer.status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_.Await(4).answer.status()));
  const ExecutorCounts counts = executor_->counts();
  EXPECT_EQ(counts.cancelled, 1U);
  EXPECT_EQ(counts.expired, 1U);
  EXPECT_EQ(counts.rejected, 0U);
  gate_.Open();
}

TEST_F(ExecutorTest, SubmitsWhatArrivesBesideManyArrivals) {
  Start(1);
  BlockWithTask(1);
  Submit(Task(2));  // the queue is full
  auto large = Task(3);
  large->request_bytes = Executor::kGatheredBytes;
  Gather(std::move(large));
  EXPECT_EQ(base::ReasonOf(executor_->Gather(Task(4), arrivals_)), base::ErrorReason::kQueueFull);
  EXPECT_EQ(answers_.CountAnswers(4), 0U);
  RunHere();
  EXPECT_EQ(answers_.CountAnswers(3), 1U);
  gate_.Open();
}

TEST_F(ExecutorTest, LeavesMuchWorkToTheDispatchThread) {
  std::thread::id searcher;
  segment_->on_search = [&] { searcher = std::this_thread::get_id(); };
  Start(1'024, 1'024);
  Gather(Task(1, 500));  // by the model that it starts with, more than kRunHereMs
  EXPECT_FALSE(RunHere());
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1, 500));
  EXPECT_NE(searcher, std::this_thread::get_id());
}

TEST_F(ExecutorTest, LeavesWorkToTheThreadThatLeads) {
  Start();
  BlockWithTask(1);
  Gather(Task(2));
  EXPECT_FALSE(RunHere());
  EXPECT_EQ(answers_.CountAnswers(2), 0U);
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
}

TEST_F(ExecutorTest, HandsLargeRepliesOfWorkRunHereToACompleter) {
  Start();
  auto task = Task(1);
  task->reply_bytes_estimate = 10U << 20;
  Gather(std::move(task));
  EXPECT_TRUE(RunHere());
  EXPECT_NE(answers_.Await(1).thread, std::this_thread::get_id());
}

TEST_F(ExecutorTest, HandsRepliesOfWorkRunHereThatAreLargeTogetherToACompleter) {
  Start();
  for (int number = 1; number <= 3; ++number) {
    auto task = Task(number);
    task->reply_bytes_estimate = 100U << 10;
    Gather(std::move(task));
  }
  EXPECT_TRUE(RunHere());
  EXPECT_EQ(answers_.Await(1).thread, std::this_thread::get_id());
  EXPECT_EQ(answers_.Await(2).thread, std::this_thread::get_id());
  EXPECT_NE(answers_.Await(3).thread, std::this_thread::get_id());
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

}  // namespace
}  // namespace simile::engine
