// Stop, and the bounds of the executor.
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/queue/executor_fixture.h"

namespace simile::engine {
namespace {

using std::chrono::milliseconds;

TEST_F(ExecutorTest, StopAnswersWaitingTasksAndFinishesThePass) {
  Start();
  BlockWithTask(1);
  Submit(Task(2));
  std::thread stopper([this] { executor_->Stop(); });
  const int refused = SubmitUntilRefused(3);
  gate_.Open();
  stopper.join();
  EXPECT_TRUE(answers_.Await(1).answer.ok());
  for (int number = 2; number < refused; ++number) {
    EXPECT_EQ(answers_.Await(number).answer.status(),
              base::Error(base::ErrorReason::kStopping, "the server is stopping"));
  }
  EXPECT_EQ(answers_.CountAnswers(refused), 0U);
  EXPECT_EQ(segment_->passes().size(), 1U);
  EXPECT_EQ(executor_->counts().queue_depth, 0U);
}

TEST_F(ExecutorTest, EndsOnceHoweverOftenItIsCalled) {
  Start();
  Submit(Task(1));
  answers_.Await(1);
  executor_->Stop();
  executor_->Stop();
  EXPECT_EQ(base::ReasonOf(executor_->Submit(Task(2))), base::ErrorReason::kStopping);
  EXPECT_EQ(answers_.CountAnswers(1), 1U);
}

// A completion that does not return must not let answers accumulate behind it.
TEST_F(ExecutorTest, DelaysPassesWhileCompletionsLagBehind) {
  Start(2, 2);
  Gate completing;
  completing.Close();
  auto slow = Task(1, 2);
  slow->done = [&, done = slow->done](absl::StatusOr<SearchAnswer> answer) {
    completing.Pass();
    done(std::move(answer));
  };
  Submit(std::move(slow));
  completing.AwaitArrivals(1);
  Submit(Task(5, 2));  // whose reply waits behind that one
  while (executor_->counts().queue_bytes > 0) std::this_thread::yield();
  Submit(Task(2));
  Submit(Task(3));
  EXPECT_EQ(base::ReasonOf(executor_->Submit(Task(4))), base::ErrorReason::kQueueFull);
  EXPECT_FALSE(RunHere());
  EXPECT_EQ(segment_->passes().size(), 2U);
  completing.Open();
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
  EXPECT_EQ(ToHits(answers_.Await(3).answer), Expected(3));
}

TEST_F(ExecutorTest, MaySubmitFromACompletion) {
  Start();
  auto first = Task(1);
  first->done = [this](const absl::StatusOr<SearchAnswer>&) { Submit(Task(2)); };
  Submit(std::move(first));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
}

// Many submitters, two snapshots, short deadlines, cancelled calls, and a stop in the middle:
// every accepted task is answered exactly once, and every answer is correct.
TEST_F(ExecutorTest, AnswersEveryTaskExactlyOnceUnderLoad) {
  constexpr int kSubmitters = 4;
  constexpr int kTasks = 250;
  Start(32, 8);
  const SnapshotPtr other =
      std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(20, kDim, 99)));
  std::atomic<int> finished_submitters = 0;
  std::atomic<std::size_t> expired_before = 0;  // as they were submitted
  std::vector<std::vector<int>> accepted(kSubmitters);
  std::vector<std::thread> submitters;
  submitters.reserve(kSubmitters);
  for (int submitter = 0; submitter < kSubmitters; ++submitter) {
    submitters.emplace_back([&, submitter] {
      std::mt19937_64 random(static_cast<std::uint64_t>(submitter));
      TaskList arrivals;
      for (int index = 0; index < kTasks; ++index) {
        const int number = submitter * kTasks + index;
        auto task = Task(number);
        if (random() % 2 == 0) task->snapshot = other;
        if (random() % 4 == 0) task->deadline = clock_.Now() + milliseconds(1);
        if (random() % 8 == 0) task->priority = Priority::kBulk;
        std::stop_source caller;
        const bool leaves = random() % 4 == 0;
        if (leaves) task->cancelled = caller.get_token();
        const bool gathers = random() % 2 == 0;
        const absl::Status taken = gathers ? executor_->Gather(std::move(task), arrivals)
                                           : executor_->Submit(std::move(task));
        if (absl::IsDeadlineExceeded(taken)) ++expired_before;
        if (taken.ok()) {
          accepted[static_cast<std::size_t>(submitter)].push_back(number);
        }
        if (leaves) caller.request_stop();
        if (gathers && random() % 4 != 0) executor_->RunHere(arrivals);
        clock_.Advance(std::chrono::microseconds(100));
      }
      executor_->RunHere(arrivals);
      ++finished_submitters;
    });
  }
  while (finished_submitters == 0) std::this_thread::yield();
  executor_->Stop();
  for (std::thread& submitter : submitters) submitter.join();

  std::size_t accepted_count = 0;
  std::size_t stopped_count = 0;
  std::size_t refused_count = 0;
  for (const std::vector<int>& numbers : accepted) {
    accepted_count += numbers.size();
    for (const int number : numbers) {
      ASSERT_EQ(answers_.CountAnswers(number), 1U) << number;
      const auto answer = answers_.Await(number).answer;
      if (answer.ok()) {
        EXPECT_EQ(ToHits(answer), Expected(number)) << number;
      } else if (base::ReasonOf(answer.status()) == base::ErrorReason::kStopping) {
        ++stopped_count;
      } else if (base::ReasonOf(answer.status()) == base::ErrorReason::kQueueFull) {
        ++refused_count;
      }
    }
  }
  EXPECT_EQ(answers_.all().size(), accepted_count);
  const ExecutorCounts counts = executor_->counts();
  EXPECT_EQ(counts.queries + counts.expired + counts.cancelled + stopped_count + refused_count,
            accepted_count + expired_before);
  EXPECT_EQ(counts.queue_depth, 0U);
}

}  // namespace
}  // namespace simile::engine
