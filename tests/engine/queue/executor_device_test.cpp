// Passes that a device works on without a thread: the next one is started meanwhile.
#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/queue/executor_fixture.h"

namespace simile::engine {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Passes of two queries at most, of 10 ms.
class ExecutorDeviceTest : public ExecutorTest {
 protected:
  static constexpr std::size_t kFull = 2;

  ExecutorDeviceTest() {
    segment_->starts = true;
    segment_->on_start = [this] {
      const int starts = Record("start", starts_);
      if (on_start_) on_start_(starts);
    };
    segment_->on_search = [this] {
      const int searches = Record("finish", searches_);
      if (on_finish_) on_finish_(searches);
      clock_.Advance(milliseconds(10));
    };
    segment_->on_abandon = [] { ADD_FAILURE() << "a pass is given up that the device works on"; };
  }

  void StartWithFullPassesOfTwo() { Start(64, kFull); }

  int Record(const char* what, int& count) {
    const std::lock_guard lock(mutex_);
    events_.push_back(what + std::to_string(++count));
    return count;
  }
  std::vector<std::string> Events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  std::function<void(int)> on_start_, on_finish_;  // set before the first task

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;
  int starts_ = 0;
  int searches_ = 0;
};

TEST_F(ExecutorDeviceTest, StartsTheNextFullPassBeforeItFinishesTheOneBefore) {
  on_start_ = [this](int start) {
    if (start != 1) return;
    Submit(Task(2, kFull));
    Submit(Task(3, kFull));
  };
  StartWithFullPassesOfTwo();
  Submit(Task(1, kFull));
  for (int number = 1; number <= 3; ++number) {
    EXPECT_EQ(ToHits(answers_.Await(number).answer), Expected(number, kFull)) << number;
  }
  EXPECT_THAT(Events(), ElementsAre("start1", "start2", "finish1", "start3", "finish2", "finish3"));
  EXPECT_EQ(answers_.Await(1).answer->receipt.compute_us, 10'000U);
  EXPECT_EQ(answers_.Await(2).answer->receipt.compute_us, 20'000U) << "with its wait on the device";
  EXPECT_EQ(executor_->counts().batches, 3U);
  executor_->Stop();
  EXPECT_EQ(executor_->counts().paused_bytes, 0U);
  // An estimate follows from what a pass took alone.
  EXPECT_NEAR(executor_->EstimateMs(*snapshot_, 3, kFull), 10, 1);
}

TEST_F(ExecutorDeviceTest, WaitsWithAPassThatCouldBecomeLarger) {
  on_start_ = [this](int start) {
    if (start == 1) Submit(Task(2));
  };
  StartWithFullPassesOfTwo();
  Submit(Task(1, kFull));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2));
  EXPECT_THAT(Events(), ElementsAre("start1", "finish1", "start2", "finish2"));
}

TEST_F(ExecutorDeviceTest, EndsACancelledTaskWithItsLastPassUnderWay) {
  constexpr std::size_t kFourPasses = 4 * kFull;
  std::stop_source caller;
  auto task = Task(1, kFourPasses);
  task->cancelled = caller.get_token();
  on_finish_ = [&](int pass) {
    if (pass == 1) caller.request_stop();
  };
  StartWithFullPassesOfTwo();
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kCancelled);
  EXPECT_THAT(Events(), ElementsAre("start1", "start2", "finish1", "finish2"));
  Submit(Task(2, kFull));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, kFull));
}

TEST_F(ExecutorDeviceTest, AnswersATaskOnceWhoseTwoPassesFail) {
  segment_->status = absl::UnavailableError("the device is lost");
  StartWithFullPassesOfTwo();
  Submit(Task(1, 3 * kFull));
  EXPECT_TRUE(absl::IsUnavailable(answers_.Await(1).answer.status()));
  EXPECT_THAT(Events(), ElementsAre("start1", "start2", "finish1", "finish2"));
  EXPECT_EQ(executor_->counts().batches, 2U);
  segment_->status = absl::OkStatus();
  Submit(Task(2, kFull));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, kFull));
}

TEST_F(ExecutorDeviceTest, FinishesBothPassesWhenItStops) {
  on_start_ = [this](int start) {
    if (start != 1) return;
    Submit(Task(2, kFull));
    Submit(Task(3, kFull));
  };
  std::thread stopping;
  on_finish_ = [&](int pass) {
    if (pass != 1) return;
    stopping = std::thread([this] { executor_->Stop(); });
    SubmitUntilRefused(4);
  };
  StartWithFullPassesOfTwo();
  Submit(Task(1, kFull));
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1, kFull));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, kFull));
  EXPECT_EQ(base::ReasonOf(answers_.Await(3).answer.status()), base::ErrorReason::kStopping);
  stopping.join();
}

// A device that fails leaves its pass to the host, which would pause it.
TEST_F(ExecutorDeviceTest, RunsAPassToItsEndThatGoesOnOnTheHost) {
  segment_->pieces = 10;
  segment_->on_piece = [this] { clock_.Advance(milliseconds(10)); };
  on_start_ = [this](int start) {
    if (start == 1) Submit(Task(2, kFull));
  };
  StartWithFullPassesOfTwo();
  Submit(Task(1, kFull));
  EXPECT_EQ(ToHits(answers_.Await(1).answer), Expected(1, kFull));
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, kFull));
  EXPECT_THAT(Events(), ElementsAre("start1", "start2", "finish1", "finish2"));
}

TEST_F(ExecutorDeviceTest, GivesUpATaskWhosePassGoesOnOnTheHost) {
  std::stop_source caller;
  segment_->pieces = 10;
  int pieces = 0;
  segment_->on_piece = [&] {
    clock_.Advance(milliseconds(10));
    if (++pieces == 3) caller.request_stop();
  };
  on_start_ = [this](int start) {
    if (start == 1) Submit(Task(2, kFull));
  };
  auto task = Task(1, kFull);
  task->cancelled = caller.get_token();
  StartWithFullPassesOfTwo();
  Submit(std::move(task));
  EXPECT_EQ(base::ReasonOf(answers_.Await(1).answer.status()), base::ErrorReason::kCancelled);
  EXPECT_EQ(ToHits(answers_.Await(2).answer), Expected(2, kFull));
  EXPECT_THAT(Events(), ElementsAre("start1", "start2", "finish1"));
}

// A pass that waited for the one after it, too, says nothing of what either takes.
TEST_F(ExecutorDeviceTest, LearnsNothingFromPassesThatEndedTogether) {
  StartWithFullPassesOfTwo();
  Submit(Task(1, kFull));
  EXPECT_TRUE(answers_.Await(1).answer.ok());
  on_start_ = [this](int start) {
    if (start == 2) Submit(Task(3, kFull));
  };
  on_finish_ = [this](int pass) {
    if (pass == 2) clock_.Advance(milliseconds(10));
    segment_->device_has_ended = pass == 2;
  };
  Submit(Task(2, kFull));
  EXPECT_TRUE(answers_.Await(2).answer.ok());
  EXPECT_TRUE(answers_.Await(3).answer.ok());
  executor_->Stop();
  EXPECT_NEAR(executor_->EstimateMs(*snapshot_, 3, kFull), 10, 0.1);
}

}  // namespace
}  // namespace simile::engine
