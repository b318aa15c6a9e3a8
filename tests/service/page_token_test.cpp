#include "service/requests/page_token.h"

#include <set>
#include <string>

#include <absl/strings/escaping.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/stable_hash.h"
#include "service/refusal.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

const PageToken kToken{.snapshot_id = "0123456789abcdef00112233445566ff",
                       .page = 7,
                       .request_hash = 0xfedc'ba98'7654'3210U};

// Tokens travel between servers of different builds: their format must not change by accident.
constexpr const char* kTokenText = "AQEjRWeJq83vABEiM0RVZv8HAAAAAAAAABAyVHaYutz-nSR7P4_-pUA";

absl::Status NotAToken() {
  return base::Error(base::ErrorReason::kInvalidPageToken,
                     "options.page_token: not a page token; send an answer's next_page_token "
                     "unchanged, or leave it out for the first page",
                     "options.page_token");
}

std::string Unescaped(const std::string& token) {
  std::string bytes;
  EXPECT_TRUE(absl::WebSafeBase64Unescape(token, &bytes));
  return bytes;
}

// A token of these bytes and their checksum.
std::string EncodeToken(std::string bytes) {
  base::StableHash hash;
  hash.Add(bytes);
  const auto checksum = base::LittleEndian(hash.Digest64());
  bytes.append(checksum.data(), checksum.size());
  return absl::WebSafeBase64Escape(bytes);
}

TEST(PageTokenTest, ReadsWhatItWrote) {
  const auto read = ReadPageToken(WritePageToken(kToken));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, kToken);
}

TEST(PageTokenTest, KeepsTheSnapshotsOfItems) {
  PageToken token = kToken;
  token.item_snapshot_ids = {"ffffffffffffffff0000000000000001", "",
                             "00112233445566778899aabbccddeeff"};
  EXPECT_EQ(ReadPageToken(WritePageToken(token)).value(), token);
  // Without them it is one that servers know which have no items of other collections.
  token.item_snapshot_ids.clear();
  EXPECT_EQ(WritePageToken(token), kTokenText);
}

TEST(PageTokenTest, HasTheSameTextInEveryBuild) {
  EXPECT_EQ(WritePageToken(kToken), kTokenText);
  EXPECT_EQ(ReadPageToken(kTokenText).value(), kToken);
}

TEST(PageTokenTest, IsSafeInAUrl) {
  EXPECT_EQ(WritePageToken(kToken).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                     "abcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
}

TEST(PageTokenTest, RefusesOtherText) {
  const std::string token = WritePageToken(kToken);
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string("!"), std::string("x y"), token.substr(4),
        token.substr(0, token.size() - 1), token + "AAAA", token + "=", token + "\n", " " + token,
        token + token}) {
    EXPECT_EQ(ReadPageToken(text).status(), NotAToken()) << text;
  }
}

TEST(PageTokenTest, RefusesEveryFlippedBit) {
  const std::string bytes = Unescaped(kTokenText);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_EQ(ReadPageToken(absl::WebSafeBase64Escape(damaged)).status(), NotAToken()) << bit;
  }
}

TEST(PageTokenTest, RefusesEveryOtherCharacter) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=";
  for (std::size_t i = 0; i < std::string(kTokenText).size(); ++i) {
    for (const char digit : digits) {
      std::string damaged = kTokenText;
      if (damaged[i] == digit) continue;
      damaged[i] = digit;
      EXPECT_EQ(ReadPageToken(damaged).status(), NotAToken()) << damaged;
    }
  }
}

TEST(PageTokenTest, SaysWhenAnotherFormatIsMeant) {
  std::string bytes = Unescaped(kTokenText);
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  EXPECT_EQ(EncodeToken(bytes), kTokenText);
  std::string later = bytes;
  later[0] = 2;
  for (const std::string& text :
       {EncodeToken(later), EncodeToken("\2"), EncodeToken(bytes + "more")}) {
    EXPECT_EQ(ReadPageToken(text).status(),
              base::Error(base::ErrorReason::kInvalidPageToken,
                          "options.page_token: a server of another version wrote it, in a format "
                          "that this one does not read; start again with the first page",
                          "options.page_token"));
  }
}

TEST(CollectionPageTest, ReadsTheTokensItWrites) {
  for (const std::string name : {"films", "a", "x.y-z_0"}) {
    EXPECT_EQ(ReadCollectionPageToken(WriteCollectionPageToken(name)).value(), name);
  }
  EXPECT_EQ(ReadCollectionPageToken("").value(), "") << "the first page";
}

TEST(CollectionPageTest, RefusesAnyOtherText) {
  const std::string token = WriteCollectionPageToken("films");
  for (const std::string& text : {std::string("films"), token.substr(1), token + "A", token + "=",
                                  std::string("MQ"), std::string("!"), std::string("ZmlsbXM")}) {
    const absl::Status refused = ReadCollectionPageToken(text).status();
    EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kInvalidPageToken) << text;
    EXPECT_EQ(base::FieldOf(refused), "page_token");
  }
}

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
