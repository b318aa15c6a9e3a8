#include "service/grpc/messages.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <google/protobuf/arena.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"
#include "simile/limits.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using std::chrono::milliseconds;
using testing::HasSubstr;

class ParseMessageTest : public testing::Test {
 protected:
  google::protobuf::Arena arena_;
  v1::SearchRequest& request_ = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena_);
};

TEST_F(ParseMessageTest, ReadsMessagesOfAnySize) {
  v1::SearchRequest sent;
  for (int query = 0; query < 30; ++query) {
    auto& vector = *sent.add_queries()->mutable_vector();
    for (int i = 0; i < 1'000; ++i) vector.add_values(static_cast<float>(query * i));
    const std::string bytes = sent.SerializeAsString();
    const absl::Status parsed = ParseMessage(bytes, request_);
    EXPECT_TRUE(parsed.ok()) << parsed << ", " << bytes.size() << " bytes";
    EXPECT_EQ(request_.SerializeAsString(), bytes);
  }
}

TEST_F(ParseMessageTest, RefusesAMessageOfVeryManyEmptyPartsWhileItIsRead) {
  constexpr char kEmptyQuery[] = {v1::SearchRequest::kQueriesFieldNumber << 3 | 2, 0};
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes.append(kEmptyQuery, sizeof kEmptyQuery);
  const absl::Status refused = ParseMessage(bytes, request_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(base::ReasonOf(refused), ErrorReason::kOutOfMemory);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2,000,000 bytes"));
  constexpr std::uint64_t kOneStep = 4U << 20;
  EXPECT_LT(arena_.SpaceAllocated(), ParsedBytesMax(bytes.size()) + kOneStep);
}

// The library keeps those outside the arena.
TEST_F(ParseMessageTest, RefusesALargeMessageOfVeryManyUnknownFieldsBeforeItIsRead) {
  constexpr std::string_view kUnknown("\x7A\0", 2);
  const auto parse = [&](std::uint64_t fields) {
    v1::SearchRequest sent;
    sent.set_collection(std::string(kParsedAtOnceBytesMax, 'x'));
    std::string bytes = sent.SerializeAsString();
    for (std::uint64_t i = 0; i < fields; ++i) bytes += kUnknown;
    return ParseMessage(bytes, request_);
  };
  const absl::Status refused = parse(kUnknownFieldsMax + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(base::ReasonOf(refused), ErrorReason::kRequestNotParsed);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("more than 10,000 fields"));
  EXPECT_EQ(request_.collection(), "");
  EXPECT_TRUE(parse(kUnknownFieldsMax).ok());
}

TEST_F(ParseMessageTest, TakesAsManyShortIdsAsACallMayHave) {
  v1::SearchRequest sent;
  for (std::uint32_t i = 0; i < Limits().exclusions_per_call_max; ++i) {
    sent.mutable_options()->add_exclude_ids("7");
  }
  const std::string bytes = sent.SerializeAsString();
  const absl::Status parsed = ParseMessage(bytes, request_);
  EXPECT_TRUE(parsed.ok()) << parsed;
}

// limits.resolve_bytes_max is at least 64 MiB, and three times limits.receive_bytes_max.
TEST(ParsedBytesMaxTest, FitsIntoTheLeastMemoryThatTheSettingsAllow) {
  for (std::size_t bytes = 64U << 10; bytes <= 512U << 20; bytes += bytes / 8) {
    EXPECT_LE(ParsedBytesMax(bytes), std::max<std::uint64_t>(64U << 20, 3 * bytes)) << bytes;
  }
}

TEST(SerializeMessageTest, MakesSmallResponsesInAnyCase) {
  const auto unsent = std::make_shared<UnsentReplies>(10);
  v1::SearchRequest message;
  message.set_collection(std::string(100, 'x'));
  EXPECT_TRUE(SerializeMessage(message, {.bytes_max = 1'000, .unsent = unsent.get()}).ok());
  EXPECT_EQ(unsent->bytes(), 0U);
}

TEST(SerializeMessageTest, RefusesALargeResponseThatWouldArriveAfterTheDeadline) {
  engine::FakeClock clock;
  v1::SearchRequest message;
  message.set_collection(std::string(10U << 20, 'x'));
  ReplyLimit limit{.bytes_max = 20U << 20, .deadline = clock.Now() + milliseconds(21)};
  limit.clock = &clock;
  EXPECT_TRUE(SerializeMessage(message, limit).ok());
  clock.Advance(milliseconds(2));
  const auto late = SerializeMessage(message, limit);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(base::ReasonOf(late.status()), ErrorReason::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()),
              HasSubstr("takes about 20 ms to send, and the deadline is in 19 ms; ask for less, or "
                        "set a later deadline"));
  clock.Advance(milliseconds(50));
  EXPECT_THAT(std::string(SerializeMessage(message, limit).status().message()),
              HasSubstr("the deadline has passed"));
  message.set_collection("films");
  EXPECT_TRUE(SerializeMessage(message, limit).ok())
      << "the transport ends calls at their deadline";
}

TEST(SerializeMessageTest, CountsAResponseUntilTheTransportLetsGoOfIt) {
  const auto unsent = std::make_shared<UnsentReplies>(2'000);
  v1::SearchRequest message;
  message.set_collection(std::string(600, 'x'));
  const ReplyLimit limit{.bytes_max = 1'000, .unsent = unsent.get(), .caller = 1};
  {
    const auto first = SerializeMessage(message, limit);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(unsent->bytes(), (*first)->size());
    const auto second = SerializeMessage(message, limit);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(base::ReasonOf(second.status()), ErrorReason::kQueueFull);
  }
  EXPECT_EQ(unsent->bytes(), 0U);
}

}  // namespace
}  // namespace simile::service
