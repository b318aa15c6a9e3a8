// Queries that one search does not answer.
#include <algorithm>
#include <atomic>
#include <memory>
#include <stop_token>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/queue/executor_fixture.h"

namespace simile::engine {
namespace {

using testing::ElementsAre;

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

  // Three queries whose vectors cancel out, so that there is no list to search for first and every
  // row is scored for each.
  std::unique_ptr<SearchTask> EveryRowTask(int number) {
    auto task = Task(number, 6);
    task->snapshot = large_;
    task->queries.resize(3);
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
    return task;
  }

  std::shared_ptr<FakeSegment> segment_of_large_;
  const SnapshotPtr large_ = std::make_shared<const Snapshot>(
      MakeSnapshot(RandomDataset(20'000, kDim, 98), &segment_of_large_));
};

TEST_F(ExecutorTest, AnswersQueriesOfSeveralRoundsBesidePlainOnes) {
  Start();
  BlockWithTask(1);
  Submit(Task(2));
  Submit(MakeHard(Task(3, 2)));
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
  const auto hard = answers_.Await(3).answer;
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_EQ(hard->results[0].hits.size(), 3U);
  EXPECT_EQ(hard->receipt.batch_size, 1U) << "they do not share the pass of plain queries";
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
  std::stop_source caller;
  segment_of_large_->on_search = [&caller] { caller.request_stop(); };
  auto hard = MakeHard(Task(2, 2));
  hard->snapshot = large_;
  hard->cancelled = caller.get_token();
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
  Submit(EveryRowTask(2));
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  EXPECT_EQ(scored, 2) << "the third began after the deadline";
}

// Had they taken turns, neither would be answered within its 10 s.
TEST_F(HardQueriesTest, AreAnsweredOldestFirst) {
  segment_of_large_->on_score = [&] {
    clock_.Advance(std::chrono::seconds(3));
    return absl::OkStatus();
  };
  BlockWithTask(1);
  Submit(EveryRowTask(2));
  Submit(EveryRowTask(3));
  gate_.Open();
  EXPECT_TRUE(answers_.Await(2).answer.ok());
  EXPECT_EQ(base::ReasonOf(answers_.Await(3).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
}

// Each search takes more than a slice, and while it runs another hard task comes.
TEST_F(HardQueriesTest, AreAnsweredHoweverManyComeAfterThem) {
  Start(1'024, 1'024);
  std::atomic<int> submitted = 2;
  segment_of_large_->on_search = [&] {
    clock_.Advance(std::chrono::milliseconds(25));
    auto another = MakeHard(Task(++submitted, 2));
    another->snapshot = large_;
    another->deadline = Clock::TimePoint::max();
    if (submitted < 1'000) executor_->Submit(std::move(another)).IgnoreError();
  };
  auto hard = MakeHard(Task(2, 2));
  hard->snapshot = large_;
  Submit(std::move(hard));
  const auto answer = answers_.Await(2).answer;
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(HardQueriesTest, AreAbandonedWhileRowsAreCompared) {
  std::atomic<int> chosen = 0;
  segment_of_large_->on_score = [&] {
    ++chosen;
    clock_.Advance(std::chrono::seconds(6));
    return absl::OkStatus();
  };
  auto task = Task(2);
  task->snapshot = large_;
  task->queries[0].k = 1'000;
  task->queries[0].diversity = Diversity{.lambda = 0.5F, .candidates = 10'000};
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  EXPECT_LT(chosen, 200) << "the first piece of this work";
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

// The clock does not move, so nothing but that task ends their slice.
TEST_F(HardQueriesTest, MakeWayForAPlainTaskThatComesDuringTheirSlice) {
  std::atomic<int> scored = 0;
  std::atomic<int> scored_before_the_pass = 0;
  segment_of_large_->on_score = [&] {
    if (++scored == 1) Submit(Task(3));
    return absl::OkStatus();
  };
  segment_->on_search = [&] { scored_before_the_pass = scored.load(); };
  Submit(EveryRowTask(2));
  EXPECT_TRUE(answers_.Await(3).answer.ok());
  EXPECT_TRUE(answers_.Await(2).answer.ok());
  EXPECT_EQ(scored_before_the_pass, 1);
  EXPECT_EQ(scored, 3);
}

TEST_F(HardQueriesTest, DoNotFailOtherTasks) {
  segment_of_large_->on_score = [] { return absl::UnavailableError("the device is gone"); };
  RunTogether();
  EXPECT_EQ(answers_.Await(2).answer.status(), absl::UnavailableError("the device is gone"));
  EXPECT_TRUE(answers_.Await(3).answer.ok());
}

TEST_F(HardQueriesTest, NameTheFallbackBackendThatScoredForThemOnly) {
  segment_of_large_->scorer = std::make_shared<const ServedBy>(
      ServedBy{{"other", "scan-other", "another test"}, "it failed at scoring"});
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
