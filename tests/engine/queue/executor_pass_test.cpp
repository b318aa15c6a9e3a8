// Passes that are paused between their pieces.
#include <atomic>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/queue/executor_fixture.h"

namespace simile::engine {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Passes of ten pieces of 10 ms: a slice has two.
class ExecutorPassTest : public ExecutorTest {
 protected:
  static constexpr std::size_t kLarge = 16;  // queries: a whole pass

  ExecutorPassTest() {
    segment_->pieces = 10;
    segment_->on_piece = [this] {
      ++pieces_;
      if (before_piece_) before_piece_(pieces_);
      clock_.Advance(milliseconds(10));
    };
  }

  // A task that notes when it is answered.
  std::unique_ptr<SearchTask> Noted(int number, std::size_t query_count) {
    auto task = Task(number, query_count);
    task->done = [this, number, done = std::move(task->done)](absl::StatusOr<SearchAnswer> answer) {
      {
        const std::lock_guard lock(mutex_);
        order_.push_back(number);
      }
      done(std::move(answer));
    };
    return task;
  }

  std::atomic<int> pieces_ = 0;
  std::function<void(int)> before_piece_;  // set before the first task
  std::mutex mutex_;
  std::vector<int> order_;  // of answers
};

TEST_F(ExecutorPassTest, AnswersShortTasksBetweenTheSlicesOfALongPass) {
  Start();
  before_piece_ = [this](int piece) {
    if (piece == 1) Submit(Noted(2, 1));
  };
  Submit(Noted(1, kLarge));
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1, kLarge));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
  EXPECT_THAT(order_, ElementsAre(2, 1));
  EXPECT_EQ(answers_.Await(1).answer->receipt.batch_size, kLarge);
  EXPECT_EQ(answers_.Await(1).answer->receipt.compute_us, 100'000U) << "its own slices alone";
  EXPECT_EQ(answers_.Await(2).answer->receipt.compute_us, 100'000U);
  EXPECT_EQ(executor_->counts().batches, 2U);
}

TEST_F(ExecutorPassTest, ReportsAPassOnceAndWhenItHasEnded) {
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint64_t> compute_us;
  std::size_t waits = 0;
  Start(64, 16, [&](const Executor::BatchReport& report) {
    sizes.push_back(report.batch_size);
    compute_us.push_back(report.compute_us);
    waits += report.queue_us.size();
  });
  Submit(Task(1, kLarge));
  answers_.Await(1);
  executor_->Stop();
  EXPECT_THAT(sizes, ElementsAre(kLarge));
  EXPECT_THAT(compute_us, ElementsAre(100'000U));
  EXPECT_EQ(waits, 1U);
}

TEST_F(ExecutorPassTest, CountsWhatAPausedPassHolds) {
  Start();
  std::uint64_t between = 0;
  before_piece_ = [&](int piece) {
    if (piece == 3) between = executor_->counts().paused_bytes;
  };
  Submit(Task(1, kLarge));
  answers_.Await(1);
  EXPECT_GE(between, 1'000U);
  executor_->Stop();
  EXPECT_EQ(executor_->counts().paused_bytes, 0U);
}

TEST_F(ExecutorPassTest, EndsAPassWhoseCallersAreGone) {
  Start();
  std::stop_source caller;
  before_piece_ = [&](int piece) {
    if (piece == 3) caller.request_stop();
  };
  auto task = Task(1, kLarge);
  task->cancelled = caller.get_token();
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kCancelled);
  executor_->Stop();
  EXPECT_EQ(pieces_, 4) << "to the end of the slice";
  EXPECT_TRUE(segment_->passes().empty());
}

TEST_F(ExecutorPassTest, AnswersTheOthersOfAPassWhenOneCallerLeaves) {
  Start(64, 32);
  std::stop_source caller;
  before_piece_ = [&](int piece) {
    if (piece == 13) caller.request_stop();
  };
  gate_.Close();  // the first pass, so that both others wait for the next
  Submit(Task(1));
  gate_.AwaitArrivals(1);
  auto leaving = Task(2, kLarge);
  leaving->cancelled = caller.get_token();
  Submit(std::move(leaving));
  Submit(Task(3, kLarge));
  gate_.Open();
  EXPECT_EQ(base::ReasonOf(answers_.Await(2).answer.status()), base::ErrorReason::kCancelled);
  EXPECT_EQ(ToHits(answers_.Await(3).answer), Expected(3, kLarge));
  EXPECT_EQ(segment_->passes().back().batch, 2 * kLarge);
}

TEST_F(ExecutorPassTest, EndsATaskAtItsDeadlineInTheMiddleOfAPass) {
  Start();
  auto task = Task(1, kLarge);
  task->deadline = clock_.Now() + milliseconds(50);
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()),
            base::ErrorReason::kDeadlineExceeded);
  executor_->Stop();
  EXPECT_EQ(pieces_, 6);
}

TEST_F(ExecutorPassTest, StopsBetweenTwoSlices) {
  Start();
  std::thread stopper;
  before_piece_ = [&](int piece) {
    if (piece != 3) return;
    stopper = std::thread([this] { executor_->Stop(); });
    // Until Stop is under way; meanwhile the queue may become full.
    for (int number = 100;; ++number) {
      const absl::Status status = executor_->Submit(Task(number));
      if (!status.ok() && base::ReasonOf(status) == base::ErrorReason::kStopping) break;
      std::this_thread::yield();
    }
  };
  Submit(Task(1, kLarge));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kStopping);
  stopper.join();
  EXPECT_EQ(pieces_, 4);
}

TEST_F(ExecutorPassTest, LeavesOneThreadIdleInBulkPassesWhileOtherTasksCome) {
  Start();
  const auto run_bulk = [this](int number, bool is_measurement = false) {
    auto task = Task(number, kLarge);
    task->priority = Priority::kBulk;
    task->is_measurement = is_measurement;
    Submit(std::move(task));
    EXPECT_EQ(ToHits(answers_.Await(number).answer), Expected(number, kLarge));
    return segment_->turns_with_one_thread_less.exchange(0);
  };
  EXPECT_EQ(run_bulk(1), 0U) << "no other task has come";
  Submit(Task(2, kLarge));
  answers_.Await(2);
  EXPECT_EQ(segment_->turns_with_one_thread_less, 0U) << "only bulk passes leave a thread";
  EXPECT_EQ(run_bulk(3), 5U);
  EXPECT_EQ(run_bulk(4, true), 0U) << "the times of other passes are estimated by it";
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(run_bulk(5), 0U) << "no other task has come for a second";
}

TEST_F(ExecutorPassTest, EstimatesNothingByPassesThatLeftAThreadIdle) {
  Start();
  Submit(Task(1, kLarge));
  answers_.Await(1);
  const double estimated_ms = executor_->EstimateMs(*snapshot_, 3, kLarge);
  EXPECT_NEAR(estimated_ms, 100, 1);
  before_piece_ = [this](int) { clock_.Advance(milliseconds(10)); };
  auto bulk = Task(2, kLarge);
  bulk->priority = Priority::kBulk;
  Submit(std::move(bulk));
  EXPECT_EQ(answers_.Await(2).answer->receipt.compute_us, 200'000U);
  executor_->Stop();
  EXPECT_EQ(executor_->EstimateMs(*snapshot_, 3, kLarge), estimated_ms);
}

// Their processors are not those of the host.
TEST_F(ExecutorPassTest, LeavesNoThreadIdleOnAGpu) {
  served_by_.info.name = "gpu";
  Start();
  Submit(Task(1, kLarge));
  answers_.Await(1);
  auto bulk = Task(2, kLarge);
  bulk->priority = Priority::kBulk;
  Submit(std::move(bulk));
  answers_.Await(2);
  EXPECT_EQ(segment_->turns_with_one_thread_less, 0U);
}

// An I/O thread would be held up by it.
TEST_F(ExecutorPassTest, LeavesAPausedPassToTheDispatchThread) {
  Start();
  std::mutex mutex;
  std::vector<std::thread::id> threads;
  before_piece_ = [&](int) {
    const std::lock_guard lock(mutex);
    threads.push_back(std::this_thread::get_id());
  };
  Gather(Task(1));
  EXPECT_TRUE(RunHere());
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1));
  ASSERT_EQ(threads.size(), 10U);
  EXPECT_EQ(threads[1], std::this_thread::get_id()) << "the first slice";
  EXPECT_NE(threads[2], std::this_thread::get_id());
}

TEST_F(ExecutorPassTest, FailsAllTasksOfAPassThatFails) {
  Start();
  segment_->status = absl::InternalError("the test says so");
  Submit(Task(1, kLarge));
  EXPECT_EQ(answers_.Await(1).answer.status(), segment_->status);
}

}  // namespace
}  // namespace simile::engine
