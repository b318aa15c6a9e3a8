#include "engine/queue/completers.h"

#include <atomic>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "engine/gate.h"

namespace simile::engine {
namespace {

constexpr std::uint64_t kLargeBytes = 1'000'000;

std::unique_ptr<QueuedTask> FinishedTask(std::uint32_t searches, bool large_reply,
                                         std::function<void()> done) {
  auto queued = std::make_unique<QueuedTask>();
  queued->task = std::make_unique<SearchTask>();
  queued->task->done = [done = std::move(done)](const absl::StatusOr<SearchAnswer>&) { done(); };
  queued->request.searches = searches;
  queued->large_reply = large_reply;
  queued->task->reply_bytes_estimate = large_reply ? kLargeBytes : 100;
  queued->answer.emplace();
  return queued;
}

TEST(CompletersTest, HandOutEverythingBeforeTheyEnd) {
  std::atomic<int> handed_out = 0;
  Completers completers(3, 1'000, 1'000 * kLargeBytes, [] {});
  for (int i = 0; i < 200; ++i) {
    completers.Add(FinishedTask(1, i % 3 == 0, [&] { ++handed_out; }));
  }
  completers.End();
  EXPECT_EQ(handed_out, 200);
}

TEST(CompletersTest, LagUntilEnoughIsHandedOut) {
  Gate gate;
  gate.Close();
  std::atomic<int> caught_up = 0;
  Completers completers(1, 3, kLargeBytes, [&] { ++caught_up; });
  completers.Add(FinishedTask(1, false, [&] { gate.Pass(); }));
  gate.AwaitArrivals(1);
  completers.Add(FinishedTask(2, false, [] {}));
  EXPECT_FALSE(completers.small_lags());
  completers.Add(FinishedTask(1, false, [] {}));
  EXPECT_TRUE(completers.small_lags());
  EXPECT_FALSE(completers.large_lags());
  gate.Open();
  completers.End();
  EXPECT_FALSE(completers.small_lags());
  EXPECT_EQ(caught_up, 1);
}

// However large the only call is: nothing waits behind it.
TEST(CompletersTest, DoNotLagForWhatIsBeingHandedOut) {
  Gate gate;
  gate.Close();
  std::atomic<int> caught_up = 0;
  Completers completers(1, 3, kLargeBytes, [&] { ++caught_up; });
  completers.Add(FinishedTask(1'024, false, [&] { gate.Pass(); }));
  gate.AwaitArrivals(1);
  EXPECT_FALSE(completers.small_lags());
  EXPECT_EQ(caught_up, 1) << "before it was handed out";
  gate.Open();
}

TEST(CompletersTest, CountLargeRepliesByTheirBytes) {
  Gate gate;
  gate.Close();
  Completers completers(1, 1'000, 2 * kLargeBytes,
                        [] { ADD_FAILURE() << "small ones never lagged"; });
  completers.Add(FinishedTask(1'024, true, [&] { gate.Pass(); }));
  gate.AwaitArrivals(1);
  completers.Add(FinishedTask(1'024, true, [] {}));
  EXPECT_FALSE(completers.large_lags());
  completers.Add(FinishedTask(1, true, [] {}));
  EXPECT_TRUE(completers.large_lags());
  EXPECT_FALSE(completers.small_lags());
  gate.Open();
  completers.End();
  EXPECT_FALSE(completers.large_lags());
}

TEST(CompletersTest, HandOutTheErrorOfALargeCallAmongSmallReplies) {
  Gate large;
  large.Close();
  Gate error;
  Completers completers(1, 1'000, 1'000 * kLargeBytes, [] {});
  completers.Add(FinishedTask(1, true, [&] { large.Pass(); }));
  large.AwaitArrivals(1);
  auto failed = FinishedTask(1, true, [&] { error.Pass(); });
  failed->answer = absl::CancelledError("");
  completers.Add(std::move(failed));
  error.AwaitArrivals(1);
  large.Open();
}

TEST(CompletersTest, HandOutSmallRepliesWhileALargeOneIsBuilt) {
  Gate large;
  large.Close();
  Gate small;
  Completers completers(1, 1'000, 1'000 * kLargeBytes, [] {});
  completers.Add(FinishedTask(1, true, [&] { large.Pass(); }));
  large.AwaitArrivals(1);
  completers.Add(FinishedTask(1, false, [&] { small.Pass(); }));
  small.AwaitArrivals(1);
  large.Open();
}

}  // namespace
}  // namespace simile::engine
