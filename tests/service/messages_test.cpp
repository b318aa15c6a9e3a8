#include "service/grpc/messages.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"
#include "service/read_request.h"
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

// The library keeps unknown fields outside the arena.
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

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

UnknownFields Count(std::string_view bytes, std::uint64_t count_max = 1'000) {
  constexpr int kBlockBytes = 7;  // fields begin in one block and end in another
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()),
                                                kBlockBytes);
  return CountUnknownFields(stream, *v1::SearchRequest::descriptor(), count_max);
}

std::string Text(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

// Counts the fields that the library keeps as unknown.
std::uint64_t CountKept(const UnknownFieldSet& fields) {
  std::uint64_t count = 0;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    ++count;
    if (field.type() == UnknownField::TYPE_GROUP) count += CountKept(field.group());
  }
  return count;
}
std::uint64_t CountKept(const Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::uint64_t count = CountKept(reflection.GetUnknownFields(message));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      count += CountKept(reflection.GetMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      count += CountKept(reflection.GetRepeatedMessage(message, field, i));
    }
  }
  return count;
}

// A request with fields of all kinds.
v1::SearchRequest LargeRequest() {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  request.add_queries()->mutable_vector()->mutable_values()->Resize(40, 0.5F);
  request.mutable_queries(1)->set_filter("year >= 1990");
  request.mutable_options()->set_k(300);
  request.mutable_options()->set_with_vectors(true);
  for (int i = 0; i < 5; ++i) request.mutable_options()->add_exclude_ids("7");
  return request;
}

TEST(CountUnknownFieldsTest, FindsNoneInAMessageOfKnownFields) {
  const UnknownFields found = Count(LargeRequest().SerializeAsString());
  EXPECT_TRUE(found.is_wire_form);
  EXPECT_EQ(found.count, 0U);
}

TEST(CountUnknownFieldsTest, FindsThemInMessagesAndGroups) {
  constexpr int kQueries = v1::SearchRequest::kQueriesFieldNumber << 3 | 2;
  constexpr int kQueriesAsNumber = v1::SearchRequest::kQueriesFieldNumber << 3;
  struct Case {
    const char* what;
    std::string bytes;
    std::uint64_t count;
  };
  const Case cases[] = {
      {"empty ones", Text({0x7A, 0, 0x7A, 0}), 2},
      {"of a nested message", Text({kQueries, 9, 0xA2, 6, 0, 0xA2, 6, 0, 0xA2, 6, 0}), 3},
      {"a known field as another type", Text({kQueriesAsNumber, 5}), 1},
      {"groups in a group", Text({0x7B, 0x7B, 0x78, 1, 0x7C, 0x7C}), 3},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const UnknownFields found = Count(each.bytes);
    EXPECT_TRUE(found.is_wire_form);
    EXPECT_EQ(found.count, each.count);
  }
}

TEST(CountUnknownFieldsTest, EndsBeyondTheMostThatIsAskedFor) {
  const std::string bytes = Text({0x7A, 0, 0x7A, 0, 0x7A, 0, 0x7A, 0});
  EXPECT_EQ(Count(bytes, 4).count, 4U);
  EXPECT_EQ(Count(bytes, 2).count, 3U);
}

TEST(CountUnknownFieldsTest, EndsWhereTheBytesAreNoFields) {
  constexpr int kQueries = v1::SearchRequest::kQueriesFieldNumber << 3 | 2;
  for (const std::string& bytes :
       {Text({0}), Text({0x7A, 9}), Text({0x7C}), Text({0x7B, 0x7A, 0}), Text({0x7B, 0x74}),
        Text({kQueries, 2, 0x7A, 5, 0, 0, 0, 0, 0}), Text({kQueries, 9, 0x7A, 0})}) {
    EXPECT_FALSE(Count(bytes).is_wire_form) << testing::PrintToString(bytes);
  }
}

// Bytes that the library can parse are in wire form, and none of the fields that it keeps as
// unknown is missed.
TEST(CountUnknownFieldsTest, MissesNoneOfWhatTheLibraryKeeps) {
  const std::string whole = LargeRequest().SerializeAsString();
  int parsed = 0;
  int kept = 0;
  for (std::uint32_t seed = 1; seed <= 20'000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = whole;
    for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    v1::SearchRequest request;
    if (!request.ParseFromString(bytes)) continue;
    const std::uint64_t count = CountKept(request);
    const UnknownFields found = Count(bytes);
    ASSERT_TRUE(found.is_wire_form) << "seed " << seed;
    ASSERT_GE(found.count, count) << "seed " << seed;
    ++parsed;
    kept += count > 0 ? 1 : 0;
  }
  EXPECT_GT(parsed, 1'000);
  EXPECT_GT(kept, 100);
}

constexpr std::uint64_t kReaderSeed = 44;

class ParseRequestTest : public testing::Test {
 protected:
  std::uint64_t Draw(std::uint64_t count) { return random_() % count; }

  std::string DrawBytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // Mostly queries of the kinds that the reader parses itself.
  v1::Query DrawQuery() {
    v1::Query query;
    switch (Draw(10)) {
      case 0:
        query.set_id("an item");
        break;
      case 1:
        query.mutable_vector()->add_values(1);
        break;
      case 2:
        break;
      default:
        query.mutable_packed_vector()->set_format(static_cast<v1::PackedVector::Format>(Draw(4)));
        query.mutable_packed_vector()->set_data(DrawBytes(Draw(2'000)));
        query.mutable_packed_vector()->set_as_stored(Draw(2) == 0);
    }
    if (Draw(3) == 0) query.set_k(static_cast<std::uint32_t>(random_()));
    if (Draw(3) == 0) query.set_offset(static_cast<std::uint32_t>(Draw(300)));
    if (Draw(8) == 0) query.set_filter("year > 1990");
    if (Draw(8) == 0) query.add_exclude_ids("another item");
    return query;
  }

  v1::SearchRequest DrawRequest() {
    v1::SearchRequest request;
    request.set_collection("films");
    while (request.ByteSizeLong() <= kParsedAtOnceBytesMax) *request.add_queries() = DrawQuery();
    request.mutable_options()->set_k(7);
    return request;
  }

  // What the reader makes of the bytes.
  std::string Read(std::string_view bytes) {
    const ReadOutcome read = ReadRequest(bytes);
    sent_ += read.vectors_in_place;
    return read.message_or_error;
  }

  const google::protobuf::LogSilencer silencer_;  // of lines about texts that are not UTF-8
  std::mt19937_64 random_{kReaderSeed};
  std::size_t sent_ = 0;  // vectors that were left where they arrived
};

TEST_F(ParseRequestTest, ReadsWhatTheLibraryReads) {
  std::cout << "seed " << kReaderSeed << "\n";
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = DrawRequest().SerializeAsString();
    const std::string expected = ParseByLibrary(bytes);
    ASSERT_EQ(Read(bytes), expected) << i;
  }
  EXPECT_GT(sent_, 3'000U);
}

TEST_F(ParseRequestTest, RefusesWhatTheLibraryRefuses) {
  const std::string bytes = DrawRequest().SerializeAsString();
  std::size_t refused = 0;
  for (int i = 0; i < 1'500; ++i) {
    std::string changed = bytes;
    switch (Draw(3)) {
      case 0:
        changed[Draw(changed.size())] ^= static_cast<char>(1 << Draw(8));
        break;
      case 1:
        changed.erase(Draw(changed.size() - kParsedAtOnceBytesMax), 1);
        break;
      default:
        changed.insert(Draw(changed.size()), DrawBytes(1 + Draw(3)));
    }
    const std::string expected = ParseByLibrary(changed);
    ASSERT_EQ(Read(changed), expected) << i;
    refused += expected.find("could not be parsed") == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(refused, 100U);
}

TEST_F(ParseRequestTest, LeavesTwoVectorsOfOneQueryToTheLibrary) {
  v1::SearchRequest request;
  v1::Query& query = *request.add_queries();
  query.mutable_packed_vector()->set_data(DrawBytes(70'000));
  const std::string first = query.SerializeAsString();
  query.mutable_packed_vector()->set_data(DrawBytes(70'001));
  query.mutable_packed_vector()->set_format(v1::PackedVector::FORMAT_F16_LE);
  // Two vectors in one query: the library merges them.
  const std::string both = first + query.SerializeAsString();
  std::string bytes("\x12", 1);
  for (std::size_t left = both.size(); left > 0; left >>= 7) {
    bytes.push_back(static_cast<char>((left & 0x7F) | (left >= 0x80 ? 0x80 : 0)));
  }
  bytes += both;
  const std::string expected = ParseByLibrary(bytes);
  EXPECT_EQ(expected.find("could not"), std::string::npos);
  EXPECT_EQ(Read(bytes), expected);
  EXPECT_EQ(sent_, 0U);
}

TEST_F(ParseRequestTest, ReadsLongFormsOfTagsAndSizesAsTheLibraryDoes) {
  const std::string rest = DrawRequest().SerializeAsString();
  const std::string forms[] = {
      std::string("\x92\x80\x80\x80\x10\x03\x1a\x01x", 9),  // field 2 in five bytes
      std::string("\x92\x00\x03\x1a\x01x", 6),
      std::string("\x92\x80\x80\x80\x80\x00\x03\x1a\x01x", 10),
      std::string("\x12\x83\x00\x1a\x01x", 6),  // its size in two bytes
      std::string("\x12\x83\x80\x80\x80\x80\x00\x1a\x01x", 10),
      std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),
      std::string("\x12\xff\xff\xff\xff\x0f", 6),
      std::string("\x12\x05\x12\x03\x12\x83\x00", 7),
      std::string("\x00\x00", 2),
      std::string("\x13\x14", 2),
      std::string("\x12\x03\x0a\x01x", 5),
  };
  for (const std::string& form : forms) {
    for (const std::string& bytes : {form + rest, rest + form}) {
      ASSERT_EQ(Read(bytes), ParseByLibrary(bytes)) << testing::PrintToString(form);
    }
  }
}

TEST_F(ParseRequestTest, LeavesRequestsOfManySmallPartsToTheLibrary) {
  std::string queries;
  for (int i = 0; i < 100'000; ++i) queries += std::string("\x12\x00", 2);
  EXPECT_EQ(Read(queries), ParseByLibrary(queries));
  v1::SearchRequest request = DrawRequest();
  for (int i = 0; i < 40'000; ++i) request.mutable_options()->add_exclude_ids("x");
  const std::string options = request.SerializeAsString();
  EXPECT_EQ(Read(options), ParseByLibrary(options));
  EXPECT_EQ(sent_, 0U);
}

TEST_F(ParseRequestTest, RefusesTooManyUnknownFieldsOfAllQueriesTogether) {
  v1::SearchRequest request = DrawRequest();
  for (int i = 0; i < 101; ++i) {
    v1::Query& query = *request.add_queries();
    query.set_id("x");
    for (int field = 0; field < 100; ++field) {
      query.GetReflection()->MutableUnknownFields(&query)->AddVarint(1'000, 1);
    }
  }
  const std::string bytes = request.SerializeAsString();
  const std::string expected = ParseByLibrary(bytes);
  EXPECT_NE(expected.find("it has more than 10,000 fields"), std::string::npos) << expected;
  EXPECT_EQ(Read(bytes), expected);
}

}  // namespace
}  // namespace simile::service
