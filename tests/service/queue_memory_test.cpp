// Queues and budgets that calls share take no memory where nothing may fail, and keep nothing of a
// call that failed. Part of the program of allocation_failure_test.cpp.
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "engine/queue/executor.h"
#include "engine/sample_data.h"
#include "memory/each_allocation.h"
#include "memory/watched_memory.h"
#include "service/calls/call.h"
#include "service/calls/unsent_replies.h"
#include "service/grpc/messages.h"
#include "service/requests/stream_requests.h"

namespace simile::service {
namespace {

using tests::Allocations;
using tests::ForEachAllocation;
using tests::WatchedMemory;
using Of = WatchedMemory::Of;

constexpr std::size_t kDim = 8;

// A queue whose first task holds the device.
class QueueFailureTest : public testing::Test {
 protected:
  QueueFailureTest() {
    std::shared_ptr<engine::FakeSegment> segment;
    snapshot_ = std::make_shared<const engine::Snapshot>(
        engine::MakeSnapshot(engine::RandomDataset(20, kDim, 99), &segment));
    segment->on_search = [this] { gate_.Pass(); };
  }

  // A task whose end is counted.
  std::unique_ptr<engine::SearchTask> Task(std::stop_token cancelled = {}) {
    auto task = std::make_unique<engine::SearchTask>();
    task->snapshot = snapshot_;
    task->queries.resize(1);
    task->vectors = engine::RandomMatrix(1, kDim, 3);
    task->deadline = Clock::TimePoint::max();
    task->cancelled = std::move(cancelled);
    task->done = [this](const absl::StatusOr<engine::SearchAnswer>& answer) {
      const std::lock_guard lock(mutex_);
      last_ = answer.ok() ? absl::StatusCode::kOk : answer.status().code();
      ++ends_;
      ended_.notify_all();
    };
    return task;
  }
  absl::StatusCode AwaitEnds(int count) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return ends_ >= count; });
    EXPECT_EQ(ends_, count);
    return last_;
  }

  engine::FakeClock clock_;
  engine::Gate gate_;
  engine::SnapshotPtr snapshot_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable ended_;
  int ends_ = 0;
  absl::StatusCode last_{};
  engine::Executor executor_{{}, {{"cpu", "scan-fake", "a test"}, "a test"}, clock_, {}};
};

TEST_F(QueueFailureTest, AnswersWhatIsCancelledWhileItWaits) {
  gate_.Close();
  ASSERT_TRUE(executor_.Submit(Task()).ok());
  gate_.AwaitArrivals(1);
  int ends = 0;
  ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
    std::stop_source caller;
    ASSERT_TRUE(executor_.Submit(Task(caller.get_token())).ok());
    {
      const WatchedMemory memory(Of::kThisThread, number);
      caller.request_stop();
      failed = memory.has_failed();
    }
    const absl::StatusCode end = AwaitEnds(++ends);
    ASSERT_EQ(end, failed ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kCancelled);
    ASSERT_EQ(executor_.counts().queue_depth, 0U);
  });
  EXPECT_GT(ends, 1);
  gate_.Open();
  EXPECT_EQ(AwaitEnds(++ends), absl::StatusCode::kOk);
}

TEST_F(QueueFailureTest, AnswersWhatIsRunOnTheThreadThatBroughtIt) {
  int ends = 0;
  ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
    engine::TaskList arrivals;
    ASSERT_TRUE(executor_.Gather(Task(), arrivals).ok());
    bool ran = false;
    {
      const WatchedMemory memory(Of::kThisThread, number);
      ran = executor_.RunHere(arrivals);
      failed = memory.has_failed();
    }
    EXPECT_TRUE(ran);
    const absl::StatusCode end = AwaitEnds(++ends);
    ASSERT_EQ(end, failed ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk);
    ASSERT_EQ(executor_.counts().queue_bytes, 0U);
  });
  EXPECT_GT(ends, 2);
}

// A reply of a given size.
class LongReply final : public Reply {
 public:
  explicit LongReply(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const override { return bytes_; }
  std::uint8_t* Write(std::uint8_t* out) const override { return std::fill_n(out, bytes_, 7); }

 private:
  const std::size_t bytes_;
};

TEST(ReplyMemoryTest, CountsNoReplyThatFindsNoMemory) {
  constexpr std::uint64_t kBytes = 1U << 20;
  const auto unsent = std::make_shared<UnsentReplies>(kBytes);
  std::size_t attempts = 0;
  ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
    ++attempts;
    const WatchedMemory memory(Of::kThisThread, number);
    const absl::Status made = Guarded([&] {
      return SerializeReply(LongReply(kBytes), {kBytes, "", unsent.get()}).status();
    });
    failed = memory.has_failed();
    ASSERT_EQ(made.ok(), !failed);
    ASSERT_EQ(unsent->bytes(), 0U);
  });
  EXPECT_GT(attempts, 2U);
}

TEST(StreamMemoryTest, TakesARequestOrLeavesTheWindowAsItWas) {
  StreamWindow window({2, 100});
  ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
    const std::uint64_t next = window.next_number();
    absl::Status taken;
    {
      const WatchedMemory memory(Of::kThisThread, number);
      taken = Guarded([&] { EXPECT_EQ(window.Add(100), next); });
      failed = memory.has_failed();
    }
    ASSERT_EQ(taken.ok(), !failed);
    ASSERT_EQ(window.empty(), failed);
    ASSERT_EQ(window.Admits(1), failed);
  });
  const WatchedMemory memory(Of::kThisThread);
  window.Complete(1);
  EXPECT_EQ(memory.allocations(), 0U);
}

}  // namespace
}  // namespace simile::service
