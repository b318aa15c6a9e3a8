// What the executor takes, what it refuses, and when the refused should come again.
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

using std::chrono::milliseconds;
using testing::HasSubstr;

class AdmissionTest : public ExecutorTest {
 protected:
  // Passes take this long on the test's clock, and the executor has seen one.
  void StartWithPasses(milliseconds duration, std::uint32_t queue_queries_max) {
    segment_->on_search = [this, duration] {
      gate_.Pass();
      clock_.Advance(duration);
    };
    Start(queue_queries_max);
    Submit(Task(1'000));
    answers_.Await(1'000);
  }

  // A task that waits at the closed gate, so that all others wait in the queue.
  void Block() {
    const std::size_t passes = segment_->passes().size();
    gate_.Close();
    Submit(Task(1'001));
    gate_.AwaitArrivals(passes + 1);
  }

  std::string SubmitRefused(std::unique_ptr<SearchTask> task) {
    const absl::Status status = executor_->Submit(std::move(task));
    EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kQueueFull) << status;
    return std::string(status.message());
  }
};

TEST_F(AdmissionTest, RefusesWhenTheQueueIsFullAndNeverCallsTheRefused) {
  Start(4);
  Block();
  for (int number = 1; number <= 4; ++number) Submit(Task(number));
  const absl::Status status = executor_->Submit(Task(5));
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kQueueFull);
  EXPECT_EQ(status.message(), "4 queries wait already and the queue holds 4: no space for 1 more");
  EXPECT_TRUE(base::ReadRetryAfter(status).has_value());
  EXPECT_EQ(executor_->counts().rejected, 1U);
  EXPECT_EQ(executor_->counts().queue_depth, 4U);
  gate_.Open();
  answers_.Await(4);
  executor_->Stop();
  EXPECT_EQ(answers_.CountAnswers(5), 0U);
  EXPECT_EQ(executor_->counts().queue_depth, 0U);
  EXPECT_EQ(executor_->counts().queue_bytes, 0U);
}

TEST_F(AdmissionTest, SaysWhenAFullQueueShouldBeEmpty) {
  StartWithPasses(milliseconds(50), 4);
  Block();
  for (int number = 1; number <= 4; ++number) Submit(Task(number));
  const absl::Status status = executor_->Submit(Task(5));
  // A pass of one search took 50 ms, and another is under way; by the model one of four takes twice
  // as long.
  EXPECT_EQ(base::ReadRetryAfter(status), milliseconds(150));
  gate_.Open();
  answers_.Await(4);
}

TEST_F(AdmissionTest, LetsOneLargeCallOfEachLaneWaitBesideAFullQueue) {
  Start(32);
  Block();
  for (int number = 1; number <= 32; ++number) Submit(Task(number));
  Submit(Task(100, 20));
  EXPECT_EQ(executor_->counts().lanes[0].large_waiting, 20U);
  EXPECT_THAT(SubmitRefused(Task(101, 20)), HasSubstr("no space for 20 more"));
  auto bulk = Task(102, 20);
  bulk->priority = Priority::kBulk;
  Submit(std::move(bulk));
  EXPECT_EQ(executor_->counts().lanes[2].large_waiting, 20U);
  EXPECT_THAT(SubmitRefused(Task(103)), HasSubstr("no space for 1 more")) << "it is not large";
  gate_.Open();
  EXPECT_EQ(ToHits(answers_.Await(100).answer), Expected(100, 20));
  EXPECT_EQ(ToHits(answers_.Await(102).answer), Expected(102, 20));
  for (int number = 1; number <= 32; ++number) {
    EXPECT_TRUE(answers_.Await(number).answer.ok());
  }
}

TEST_F(AdmissionTest, KeepsALargeCallsPlaceFromSmallOnesOnly) {
  Start(32);
  Block();
  Submit(Task(100, 30));
  for (int number = 1; number <= 32; ++number) Submit(Task(number));
  EXPECT_EQ(executor_->counts().queue_depth, 62U) << "the large call fills no queue";
  gate_.Open();
  answers_.Await(100);
  answers_.Await(32);
}

TEST_F(AdmissionTest, RefusesCallsWhoseBytesDoNotFit) {
  options_.queue_bytes_max = 100'000;
  Start(64);
  Block();
  const auto large = [&](int number) {
    auto task = Task(number);
    task->queries[0].excluded_rows.reserve(10'000);  // 40,000 bytes
    return task;
  };
  Submit(large(1));  // beside the queue
  Submit(large(2));
  EXPECT_THAT(SubmitRefused(large(3)),
              HasSubstr("bytes, and the limit is 100,000: no space for 4"));
  EXPECT_GT(executor_->counts().queue_bytes, 80'000U);
  gate_.Open();
  answers_.Await(2);
  executor_->Stop();
  EXPECT_EQ(executor_->counts().queue_bytes, 0U);
}

// Those under way count: one large call in each slice would pass the bound without end.
TEST_F(AdmissionTest, RefusesALargeCallWhileTheBytesOfOthersArePassed) {
  options_.queue_bytes_max = 100'000;
  Start(64);
  gate_.Close();
  const auto large = [&](int number) {
    auto task = Task(number);
    task->queries[0].excluded_rows.reserve(30'000);  // 120,000 bytes
    return task;
  };
  Submit(large(1));
  gate_.AwaitArrivals(1);
  EXPECT_EQ(executor_->counts().lanes[0].large_waiting, 0U) << "it has begun";
  EXPECT_THAT(SubmitRefused(large(2)), HasSubstr("bytes, and the limit is 100,000"));
  gate_.Open();
  answers_.Await(1);
}

TEST_F(AdmissionTest, CountsHardCallsAsWaitingWhileOlderOnesFillASearch) {
  Start(64, 1);
  std::atomic<int> passes = 0;
  Gate second_pass;
  second_pass.Close();
  segment_->on_search = [&] {
    gate_.Pass();
    if (++passes == 2) second_pass.Pass();
  };
  const auto hard = [&](int number) {
    auto task = Task(number);
    task->queries[0].diversity = Diversity{.lambda = 0.5F, .candidates = 5};
    return task;
  };
  gate_.Close();
  Submit(hard(1));
  gate_.AwaitArrivals(1);
  Submit(hard(2));
  Submit(hard(3));
  gate_.Open();
  second_pass.AwaitArrivals(1);
  EXPECT_EQ(executor_->counts().lanes[1].running, 1U);
  EXPECT_EQ(executor_->counts().lanes[1].waiting, 1U);
  second_pass.Open();
  EXPECT_TRUE(answers_.Await(3).answer.ok());
}

TEST_F(AdmissionTest, RefusesACallThatCannotBeAnsweredInTime) {
  StartWithPasses(milliseconds(100), 64);
  Block();
  for (int number = 1; number <= 10; ++number) Submit(Task(number));
  auto hurried = Task(11);
  hurried->deadline = clock_.Now() + milliseconds(500);
  const absl::Status status = executor_->Submit(std::move(hurried));
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kQueueFull);
  // The pass under way, 100 ms, two of four searches, 200 ms each, and one of three with its own,
  // 167 ms; and a quarter more.
  EXPECT_EQ(
      status.message(),
      "the answer would take about 833 ms, including the calls before it, and the deadline is in "
      "500 ms");
  EXPECT_EQ(base::ReadRetryAfter(status), milliseconds(333));
  auto patient = Task(12);
  patient->deadline = clock_.Now() + milliseconds(1'200);
  Submit(std::move(patient));
  gate_.Open();
  EXPECT_TRUE(answers_.Await(12).answer.ok()) << answers_.Await(12).answer.status();
}

TEST_F(AdmissionTest, TriesACallOnAnIdleDeviceWhateverItIsEstimatedToTake) {
  StartWithPasses(milliseconds(900), 64);
  auto hurried = Task(1);
  hurried->deadline = clock_.Now() + milliseconds(50);
  Submit(std::move(hurried));
  EXPECT_TRUE(answers_.Await(1).answer.ok()) << "it was begun in time";
}

TEST_F(AdmissionTest, RefusesLargeRepliesWhileTooManyWaitToBeBuilt) {
  options_.queue_bytes_max = 20U << 20;
  Start();
  Gate building;
  building.Close();
  const auto large = [&](int number) {
    auto task = Task(number);
    task->reply_bytes_estimate = 10U << 20;
    task->done = [&building, done = task->done](absl::StatusOr<SearchAnswer> answer) {
      building.Pass();
      done(std::move(answer));
    };
    return task;
  };
  Submit(large(1));
  building.AwaitArrivals(1);
  Submit(large(2));
  Submit(large(3));
  Submit(Task(4));
  EXPECT_TRUE(answers_.Await(4).answer.ok()) << "small replies go on";
  EXPECT_EQ(SubmitRefused(large(5)), "too many large replies wait to be sent");
  building.Open();
  answers_.Await(3);
}

TEST_F(AdmissionTest, ForgetsAThousandCancelledCallsAtOnce) {
  StartWithPasses(milliseconds(100), 1'024);
  Block();
  std::stop_source callers;
  for (int number = 1; number <= 1'000; ++number) {
    auto task = Task(number);
    task->deadline = Clock::TimePoint::max();
    task->cancelled = callers.get_token();
    Submit(std::move(task));
  }
  EXPECT_EQ(executor_->counts().queue_depth, 1'000U);
  callers.request_stop();
  EXPECT_EQ(executor_->counts().queue_depth, 0U);
  EXPECT_EQ(executor_->counts().cancelled, 1'000U);
  auto task = Task(2'000);
  task->deadline = clock_.Now() + milliseconds(250);
  Submit(std::move(task));
  gate_.Open();
  EXPECT_TRUE(answers_.Await(2'000).answer.ok());
  EXPECT_EQ(segment_->passes().size(), 3U) << "nothing was computed for them";
}

TEST_F(AdmissionTest, CountsEachLane) {
  Start();
  Block();
  Submit(Task(1, 2));
  auto hard = Task(2);
  hard->queries[0].diversity = Diversity{.lambda = 0.5F, .candidates = 5};
  Submit(std::move(hard));
  auto bulk = Task(3, 3);
  bulk->priority = Priority::kBulk;
  Submit(std::move(bulk));
  const ExecutorCounts counts = executor_->counts();
  EXPECT_EQ(counts.lanes[0].waiting, 2U);
  EXPECT_EQ(counts.lanes[0].running, 1U);
  EXPECT_EQ(counts.lanes[1].waiting, 1U);
  EXPECT_EQ(counts.lanes[2].waiting, 3U);
  EXPECT_EQ(counts.queue_depth, 6U);
  gate_.Open();
  for (int number = 1; number <= 3; ++number) EXPECT_TRUE(answers_.Await(number).answer.ok());
  executor_->Stop();
  for (const LaneCounts& lane : executor_->counts().lanes) {
    EXPECT_EQ(lane.waiting + lane.running + lane.large_waiting, 0U);
  }
}

}  // namespace
}  // namespace simile::engine
