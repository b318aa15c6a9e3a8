#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "service/grpc/messages.h"
#include "service/read_request.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr std::uint64_t kSeed = 44;

class ParseRequestTest : public testing::Test {
 protected:
  std::uint64_t Draw(std::uint64_t count) { return random_() % count; }

  std::string DrawBytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  // Mostly such queries as the reader makes itself.
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
  std::mt19937_64 random_{kSeed};
  std::size_t sent_ = 0;  // vectors that were left where they arrived
};

TEST_F(ParseRequestTest, ReadsWhatTheLibraryReads) {
  std::cout << "seed " << kSeed << "\n";
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
