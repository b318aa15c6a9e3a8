#include "service/grpc/unknown_fields.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

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

// What the library keeps as unknown.
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

// With fields of all kinds.
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

// Whatever the library reads is fields, and of what it keeps as unknown none is missed.
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

}  // namespace
}  // namespace simile::service
