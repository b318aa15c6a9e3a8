#include "service/requests/stream_requests.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "simile/v1/search.pb.h"

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
  constexpr std::uint64_t kReplyBytesMax = 50;
  constexpr std::uint64_t kRequests = 200;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool as_completed = random() % 2 == 0;
    StreamWindow window({kRequestsMax, kReplyBytesMax});
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
          ASSERT_TRUE(bytes_open <= kReplyBytesMax || window.count() == 1);
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

using std::chrono::milliseconds;

const Limits kLimits;

v1::SearchStreamRequest WithTimeout(std::int64_t seconds, std::int32_t nanos) {
  v1::SearchStreamRequest request;
  request.mutable_timeout()->set_seconds(seconds);
  request.mutable_timeout()->set_nanos(nanos);
  return request;
}

v1::SearchStreamRequest WithOrder(int order) {
  v1::SearchStreamRequest request;
  request.set_answer_order(static_cast<v1::AnswerOrder>(order));
  return request;
}

TEST(ValidateTimeoutTest, TakesTheDefaultWithoutOne) {
  EXPECT_EQ(ValidateTimeout({}, kLimits).value(), milliseconds(2'000));
}

TEST(ValidateTimeoutTest, TakesAnyUpToTheMaximum) {
  EXPECT_EQ(ValidateTimeout(WithTimeout(0, 1), kLimits).value(), std::chrono::nanoseconds(1));
  EXPECT_EQ(ValidateTimeout(WithTimeout(1, 500'000'000), kLimits).value(), milliseconds(1'500));
  EXPECT_EQ(ValidateTimeout(WithTimeout(10, 0), kLimits).value(), milliseconds(10'000));
  Limits limits;
  limits.search_deadline_max = milliseconds(1'500);
  EXPECT_EQ(ValidateTimeout(WithTimeout(1, 500'000'000), limits).value(), milliseconds(1'500));
  EXPECT_FALSE(ValidateTimeout(WithTimeout(1, 500'000'001), limits).ok());
}

TEST(ValidateTimeoutTest, RefusesTheRest) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  for (const auto& [seconds, nanos] : {std::pair<std::int64_t, std::int32_t>{0, 0},
                                       {-1, 0},
                                       {0, -1},
                                       {1, -1},
                                       {10, 1},
                                       {11, 0},
                                       {0, 1'000'000'000},
                                       {kMost, 0},
                                       {kLeast, 0},
                                       {kMost, 999'999'999}}) {
    const auto timeout = ValidateTimeout(WithTimeout(seconds, nanos), kLimits);
    ASSERT_FALSE(timeout.ok()) << seconds << " " << nanos;
    EXPECT_EQ(base::ReasonOf(timeout.status()), base::ErrorReason::kInvalidField);
    EXPECT_EQ(base::FieldOf(timeout.status()), "timeout");
  }
  EXPECT_EQ(std::string(ValidateTimeout(WithTimeout(11, 5), kLimits).status().message()),
            "timeout: 11 s and 5 ns; give more than 0 and up to 10,000 ms");
}

TEST(StreamOrderTest, IsAsSentUnlessTheFirstMessageSaysOtherwise) {
  for (const v1::AnswerOrder first :
       {v1::ANSWER_ORDER_UNSPECIFIED, v1::ANSWER_ORDER_AS_SENT, v1::ANSWER_ORDER_AS_COMPLETED}) {
    StreamOrder order;
    EXPECT_FALSE(order.as_completed());
    EXPECT_TRUE(order.Agree(WithOrder(first)).ok());
    EXPECT_EQ(order.as_completed(), first == v1::ANSWER_ORDER_AS_COMPLETED);
    EXPECT_TRUE(order.Agree(WithOrder(first)).ok());
    EXPECT_TRUE(order.Agree(WithOrder(v1::ANSWER_ORDER_UNSPECIFIED)).ok());
  }
  StreamOrder order;
  EXPECT_TRUE(order.Agree(WithOrder(v1::ANSWER_ORDER_UNSPECIFIED)).ok());
  EXPECT_TRUE(order.Agree(WithOrder(v1::ANSWER_ORDER_AS_SENT)).ok());
}

TEST(StreamOrderTest, RefusesAnotherOrderLater) {
  StreamOrder order;
  EXPECT_TRUE(order.Agree(WithOrder(v1::ANSWER_ORDER_AS_COMPLETED)).ok());
  const absl::Status refused = order.Agree(WithOrder(v1::ANSWER_ORDER_AS_SENT));
  EXPECT_EQ(base::FieldOf(refused), "answer_order");
  EXPECT_EQ(std::string(refused.message()),
            "answer_order: ANSWER_ORDER_AS_SENT, but the first message of the stream chose "
            "ANSWER_ORDER_AS_COMPLETED; leave it out in later ones");
  EXPECT_TRUE(order.as_completed());
  StreamOrder plain;
  EXPECT_TRUE(plain.Agree(WithOrder(v1::ANSWER_ORDER_UNSPECIFIED)).ok());
  EXPECT_FALSE(plain.Agree(WithOrder(v1::ANSWER_ORDER_AS_COMPLETED)).ok());
  EXPECT_FALSE(plain.as_completed());
}

TEST(StreamOrderTest, RefusesAnUnknownOrder) {
  StreamOrder order;
  const absl::Status refused = order.Agree(WithOrder(9));
  EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kInvalidField);
  EXPECT_EQ(std::string(refused.message()),
            "answer_order: 9 is unknown; set ANSWER_ORDER_AS_SENT or ANSWER_ORDER_AS_COMPLETED");
  EXPECT_TRUE(order.Agree(WithOrder(v1::ANSWER_ORDER_AS_SENT)).ok());
  EXPECT_FALSE(order.Agree(WithOrder(v1::ANSWER_ORDER_AS_COMPLETED)).ok());
}

TEST(ReplyBytesMaxTest, IsWhatTheRequestAllowsWithinTheMaximum) {
  v1::SearchStreamRequest request;
  EXPECT_EQ(ReplyBytesMax(request, kLimits), kLimits.reply_bytes_default);
  request.mutable_search()->mutable_options()->set_reply_bytes_max(1'000);
  EXPECT_EQ(ReplyBytesMax(request, kLimits), 1'000U);
  request.mutable_recommend()->mutable_options()->set_reply_bytes_max(0xffff'ffffU);
  EXPECT_EQ(ReplyBytesMax(request, kLimits), kLimits.reply_bytes_max);
}

}  // namespace
}  // namespace simile::service
