#include "service/validate_stream.h"

#include <chrono>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

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
