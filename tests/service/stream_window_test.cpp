#include "service/stream_window.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(StreamWindowTest, TakesAsManyRequestsAsItMay) {
  StreamWindow window({2, 100});
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.Add(1), 1U);
  EXPECT_TRUE(window.Admits(1));
  EXPECT_EQ(window.Add(1), 2U);
  EXPECT_FALSE(window.has_place());
  EXPECT_FALSE(window.Admits(0));
  // A completed request counts until its answer is sent.
  window.Complete(1);
  EXPECT_FALSE(window.Admits(0));
  window.Sent(1);
  EXPECT_TRUE(window.Admits(1));
  EXPECT_EQ(window.count(), 1U);
}

TEST(StreamWindowTest, BoundsTheBytesOfAllAnswersButTakesOneAlone) {
  StreamWindow window({64, 100});
  EXPECT_TRUE(window.Admits(1'000));
  window.Add(1'000);
  EXPECT_FALSE(window.Admits(0));
  window.Complete(1);
  window.Sent(1);
  window.Add(60);
  EXPECT_TRUE(window.Admits(40));
  EXPECT_FALSE(window.Admits(41));
  window.Add(40);
  EXPECT_FALSE(window.Admits(1));
  window.Complete(2);
  window.Sent(2);
  EXPECT_TRUE(window.Admits(60));
}

TEST(StreamWindowTest, SendsInTheOrderOfTheRequests) {
  StreamWindow window({64, 100});
  for (int i = 0; i < 3; ++i) window.Add(1);
  window.Complete(3);
  window.Complete(2);
  EXPECT_FALSE(window.NextToSend().has_value());
  window.Complete(1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_EQ(window.NextToSend(), number);
    window.Sent(number);
  }
  EXPECT_FALSE(window.NextToSend().has_value());
  EXPECT_TRUE(window.empty());
}

TEST(StreamWindowTest, SendsInTheOrderOfCompletionWhenToldTo) {
  StreamWindow window({64, 100});
  window.SetAsCompleted(true);
  for (int i = 0; i < 3; ++i) window.Add(1);
  EXPECT_FALSE(window.NextToSend().has_value());
  for (const std::uint64_t number : {3U, 1U, 2U}) window.Complete(number);
  for (const std::uint64_t number : {3U, 1U, 2U}) {
    ASSERT_EQ(window.NextToSend(), number);
    window.Sent(number);
  }
  EXPECT_TRUE(window.empty());
}

// Random completions: never more than the bounds, every request answered once, and in order.
TEST(StreamWindowTest, KeepsItsPromisesUnderAnyOrderOfCompletion) {
  constexpr std::size_t kRequestsMax = 5;
  constexpr std::uint64_t kBytesMax = 50;
  constexpr std::uint64_t kRequests = 200;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool as_completed = random() % 2 == 0;
    StreamWindow window({kRequestsMax, kBytesMax});
    window.SetAsCompleted(as_completed);
    std::vector<std::uint64_t> bytes(kRequests + 1);
    for (std::uint64_t& each : bytes) each = random() % 60;  // some are above the maximum
    std::vector<std::uint64_t> running;
    std::vector<std::uint64_t> completed;
    std::vector<std::uint64_t> sent;
    std::uint64_t bytes_open = 0;
    for (std::uint64_t added = 0; sent.size() < kRequests;) {
      switch (random() % 3) {
        case 0:
          if (added == kRequests || !window.Admits(bytes[added + 1])) break;
          ++added;
          ASSERT_EQ(window.Add(bytes[added]), added);
          running.push_back(added);
          bytes_open += bytes[added];
          ASSERT_LE(window.count(), kRequestsMax);
          ASSERT_TRUE(bytes_open <= kBytesMax || window.count() == 1);
          break;
        case 1: {
          if (running.empty()) break;
          const auto chosen =
              running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
          window.Complete(*chosen);
          completed.push_back(*chosen);
          running.erase(chosen);
          break;
        }
        default:
          if (const auto number = window.NextToSend()) {
            window.Sent(*number);
            bytes_open -= bytes[*number];
            sent.push_back(*number);
          }
      }
    }
    EXPECT_TRUE(window.empty());
    EXPECT_TRUE(as_completed ? sent == completed : std::is_sorted(sent.begin(), sent.end()));
  }
}

}  // namespace
}  // namespace simile::service
