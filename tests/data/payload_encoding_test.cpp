#include "data/payload/payload_encoding.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "data/payload_message.h"
#include "data/random_payload.h"

namespace simile::data {
namespace {

std::vector<std::uint8_t> Encoded(const PayloadValue& value) {
  std::vector<std::uint8_t> bytes;
  AppendValue(bytes, value);
  return bytes;
}

// Both directions: protobuf parses what we encode, and we decode what protobuf serializes.
void ExpectAsProtobuf(const PayloadValue& value) {
  v1::PayloadValue expected;
  FillMessage(value, expected);
  const std::vector<std::uint8_t> encoded = Encoded(value);
  v1::PayloadValue parsed;
  ASSERT_TRUE(parsed.ParseFromArray(encoded.data(), static_cast<int>(encoded.size())));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(parsed, expected))
      << parsed.ShortDebugString() << "\nexpected " << expected.ShortDebugString();
  EXPECT_EQ(encoded.size(), expected.ByteSizeLong());
  EXPECT_EQ(DecodeValue(encoded), value);

  const std::string serialized = expected.SerializeAsString();
  const PayloadValue decoded =
      DecodeValue({reinterpret_cast<const std::uint8_t*>(serialized.data()), serialized.size()});
  // protobuf orders the members of an object as it likes.
  v1::PayloadValue again;
  FillMessage(decoded, again);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again, expected))
      << again.ShortDebugString();

  // A value says itself where it ends.
  std::vector<std::uint8_t> followed = encoded;
  followed.push_back(0x2a);
  EXPECT_EQ(PayloadCursor(followed).ReadValueBytes().size(), encoded.size());
}

TEST(PayloadEncodingTest, EncodesEveryKindAsProtobufDoes) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kGreatest = std::numeric_limits<std::int64_t>::max();
  const std::string long_text(70'000, 'x');
  const PayloadValue values[] = {
      {},
      {true},
      {false},
      {std::int64_t{0}},
      {std::int64_t{1995}},
      {std::int64_t{-1}},
      {kLeast},
      {kGreatest},
      {0.0},
      {-0.0},
      {0.1},
      {5e-324},
      {std::string()},
      {std::string("Toy Story")},
      {std::string("Am\xc3\xa9lie \xf0\x9f\x8e\xac")},
      {std::string("\0x", 2)},
      {std::string(127, 'a')},
      {std::string(128, 'a')},
      {long_text},
      {PayloadList{}},
      {PayloadList{{}, {true}, {std::int64_t{-7}}, {2.5}, {std::string("x")}, {std::string()}}},
      {PayloadList{{PayloadList{}}, {PayloadList{{PayloadObject{}}}}, {PayloadObject{}}}},
      {PayloadList{{long_text}, {long_text}}},
      {PayloadObject{}},
      {PayloadObject{{"", {}}, {"a", {PayloadList{{std::int64_t{1}}}}}, {"b", {long_text}}}},
      {PayloadObject{{"director", {PayloadObject{{"name", {std::string("Lasseter")}}}}}}},
  };
  for (const PayloadValue& value : values) ExpectAsProtobuf(value);
}

TEST(PayloadEncodingTest, EncodesRandomValuesAsProtobufDoes) {
  constexpr std::uint64_t kSeed = 17;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 5'000; ++i) ASSERT_NO_FATAL_FAILURE(ExpectAsProtobuf(RandomValue(random, 6)));
}

TEST(PayloadEncodingTest, KeepsTheSignOfZero) {
  EXPECT_TRUE(std::signbit(std::get<double>(DecodeValue(Encoded({-0.0})).value)));
}

}  // namespace
}  // namespace simile::data
