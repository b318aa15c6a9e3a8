#include "service/request_hash.h"

#include <set>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "service/refusal.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

std::uint64_t HashOfSearch(const std::string& text) {
  return HashRequest(Parse<v1::SearchRequest>(text));
}

TEST(HashRequestTest, IsTheSameForEveryPageOfARequest) {
  const std::string rest = "k: 3 exclude_ids: ['b', 'c'] diversity { lambda: 0.5 } ";
  const std::uint64_t first = HashOfSearch(kQuery + "options { paged: true " + rest + "}");
  EXPECT_EQ(HashOfSearch(kQuery + "options { page_token: 'next' " + rest + "}"), first);
  EXPECT_EQ(HashOfSearch(kQuery + "options { paged: true page_token: 'other' " + rest + "}"),
            first);
}

// Sets a field of a message to something, whatever its type.
void SetSomething(google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& set = *message.GetReflection();
  if (field.is_repeated()) {
    ASSERT_EQ(field.cpp_type(), FieldDescriptor::CPPTYPE_STRING) << field.full_name();
    return set.AddString(&message, &field, "x");
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return set.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return set.SetEnumValue(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return set.SetFloat(&message, &field, 0.5F);
    case FieldDescriptor::CPPTYPE_STRING:
      return set.SetString(&message, &field, "x");
    case FieldDescriptor::CPPTYPE_UINT32:
      return set.SetUInt32(&message, &field, 3);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      set.MutableMessage(&message, &field);
      return;
    default:
      FAIL() << field.full_name();
  }
}

TEST(HashRequestTest, DependsOnEveryOptionThatChangesTheAnswer) {
  const std::set<std::string> free = {
      "paged",          "page_token", "reply_bytes_max", "expected_snapshot_id",
      "receipt_detail", "priority",   "layout"};
  const std::uint64_t without = HashOfSearch(kQuery);
  const google::protobuf::Descriptor& options = *v1::SearchOptions::descriptor();
  std::set<std::uint64_t> hashes = {without};
  for (int i = 0; i < options.field_count(); ++i) {
    v1::SearchRequest request = Parse<v1::SearchRequest>(kQuery);
    SetSomething(*request.mutable_options(), *options.field(i));
    const std::uint64_t hash = HashRequest(request);
    if (free.contains(options.field(i)->name())) {
      EXPECT_EQ(hash, without) << options.field(i)->name();
    } else {
      EXPECT_TRUE(hashes.insert(hash).second) << options.field(i)->name();
    }
  }
}

// Tokens travel between servers of different builds: the hash must not change by accident.
TEST(HashRequestTest, IsTheSameInEveryBuild) {
  EXPECT_EQ(HashOfSearch(kQuery + "queries { vector { values: [1, -0.5] } k: 300 } "
                                  "options { paged: true filter: 'year > 1990' k: 5 }"),
            0x8465'4045'0862'dee2U);
  EXPECT_EQ(HashRequest(Parse<v1::RecommendRequest>(kFilms + "user_ids: ['u', 'v']")),
            0x9b50'89f4'7038'0099U);
}

TEST(HashRequestTest, DiffersWithTheKindOfTheRequest) {
  EXPECT_NE(HashRequest(Parse<v1::SearchRequest>(kFilms)),
            HashRequest(Parse<v1::RecommendRequest>(kFilms)));
}

TEST(HashRequestTest, DiffersWithEveryOtherField) {
  const std::string options = "options { paged: true ";
  std::set<std::uint64_t> hashes;
  for (const std::string& text :
       {kQuery + options + "}", "collection: 'other' queries { id: 'a' }" + options + "}",
        kQuery + "queries { id: 'a' } " + options + "}",
        kFilms + "queries { user_id: 'a' } " + options + "}",
        kFilms + "queries { id: 'a' k: 7 } " + options + "}",
        kFilms + "queries { vector { values: [1, 2] } } " + options + "}",
        kFilms + "queries { vector { values: [2, 1] } } " + options + "}",
        kQuery + options + "k: 7 }", kQuery + options + "offset: 7 }",
        kQuery + options + "exclude_ids: ['a', 'bc'] }",
        kQuery + options + "exclude_ids: ['ab', 'c'] }", kQuery + options + "filter: 'x = 1' }",
        kQuery + options + "cold_start { order: ORDER_NEWEST } }"}) {
    EXPECT_TRUE(hashes.insert(HashOfSearch(text)).second) << text;
  }
}

TEST(HashRequestTest, HashesRecommendRequests) {
  const auto hash = [](const std::string& rest) {
    return HashRequest(Parse<v1::RecommendRequest>(kFilms + rest));
  };
  const std::uint64_t first = hash("user_ids: ['u', 'v'] options { paged: true k: 3 }");
  EXPECT_EQ(hash("user_ids: ['u', 'v'] options { page_token: 'next' k: 3 }"), first);
  EXPECT_NE(hash("user_ids: ['v', 'u'] options { page_token: 'next' k: 3 }"), first);
}

}  // namespace
}  // namespace simile::service
