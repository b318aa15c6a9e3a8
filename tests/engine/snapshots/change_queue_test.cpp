#include "engine/snapshots/change_queue.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/gate.h"

namespace simile::engine {
namespace {

using testing::ElementsAre;

TEST(ChangeQueueTest, RunsChangesInOrderOnAnotherThread) {
  ChangeQueue queue;
  Gate reached;
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int change = 0; change < 3; ++change) {
    ASSERT_TRUE(queue
                    .Submit([&, change] {
                      order.push_back(change);
                      threads.push_back(std::this_thread::get_id());
                      reached.Pass();
                    })
                    .ok());
  }
  reached.AwaitArrivals(3);
  queue.Stop();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_EQ(threads[0], threads[2]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(ChangeQueueTest, RefusesWhenTheMaximumWaits) {
  ChangeQueue queue(2);
  Gate gate;
  gate.Close();
  ASSERT_TRUE(queue.Submit([&] { gate.Pass(); }).ok());
  gate.AwaitArrivals(1);
  ASSERT_TRUE(queue.Submit([] {}).ok());
  ASSERT_TRUE(queue.Submit([] {}).ok());
  bool called = false;
  const absl::Status status = queue.Submit([&] { called = true; }, [&] { called = true; });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "2 changes to collections wait already; try again later");
  gate.Open();
  queue.Stop();
  EXPECT_FALSE(called);
}

TEST(ChangeQueueTest, FinishesTheRunningChangeAndAbandonsTheRestWhenStopped) {
  ChangeQueue queue;
  Gate gate;
  gate.Close();
  std::vector<std::string> happened;
  ASSERT_TRUE(queue
                  .Submit([&] {
                    gate.Pass();
                    happened.emplace_back("first finished");
                  })
                  .ok());
  gate.AwaitArrivals(1);
  ASSERT_TRUE(queue
                  .Submit([&] { happened.emplace_back("second ran"); },
                          [&] { happened.emplace_back("second abandoned"); })
                  .ok());
  ASSERT_TRUE(queue.Submit([&] { happened.emplace_back("third ran"); }).ok());
  std::thread stopper([&] { queue.Stop(); });
  // Stop has begun once it refuses.
  while (queue.Submit([] {}).code() != absl::StatusCode::kUnavailable) std::this_thread::yield();
  gate.Open();
  stopper.join();
  EXPECT_THAT(happened, ElementsAre("first finished", "second abandoned"));
}

TEST(ChangeQueueTest, RefusesAfterStopAndStopsTwice) {
  ChangeQueue queue;
  queue.Stop();
  queue.Stop();
  EXPECT_EQ(queue.Submit([] {}).code(), absl::StatusCode::kUnavailable);
}

TEST(ChangeQueueTest, FreesWhatAChangeHeldBeforeTheNextOneRuns) {
  ChangeQueue queue;
  Gate reached;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  bool gone = false;
  ASSERT_TRUE(queue.Submit([held = std::move(held)] {}).ok());
  ASSERT_TRUE(queue
                  .Submit([&] {
                    gone = watch.expired();
                    reached.Pass();
                  })
                  .ok());
  reached.AwaitArrivals(1);
  queue.Stop();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace simile::engine
