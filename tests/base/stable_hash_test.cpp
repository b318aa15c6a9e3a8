#include "base/stable_hash.h"

#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

std::string Hex(const StableHash::Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

// As `printf TEXT | xxhsum -H2` prints them.
TEST(StableHashTest, HasTheDigestsThatXxhsumPrints) {
  StableHash hash;
  EXPECT_EQ(Hex(hash.Digest128()), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash.Digest64(), 0x6001'c324'468d'497fU);
  hash.Add("a");
  EXPECT_EQ(Hex(hash.Digest128()), "a96faf705af16834e6c632b61e964e1f");
  StableHash longer;
  longer.Add("Nobody inspects the spammish repetition");
  EXPECT_EQ(Hex(longer.Digest128()), "a32c6f55b80b5f449f1a957522431b91");
}

TEST(StableHashTest, DoesNotDependOnTheParts) {
  std::string bytes;
  for (int i = 0; i < 5'000; ++i) bytes += static_cast<char>(i * 7 + i / 256);
  StableHash whole;
  whole.Add(bytes);
  for (const std::size_t step : {1U, 63U, 64U, 255U, 256U, 257U, 1'024U, 4'999U}) {
    StableHash parts;
    for (std::size_t begin = 0; begin < bytes.size(); begin += step) {
      parts.Add(std::string_view(bytes).substr(begin, step));
    }
    EXPECT_EQ(parts.Digest128(), whole.Digest128()) << step;
  }
  EXPECT_EQ(StableHash::Hash64(bytes), whole.Digest64());
  EXPECT_EQ(StableHash::Hash64(""), StableHash().Digest64());
}

TEST(StableHashTest, LaysNumbersOutLittleEndian) {
  constexpr auto kBytes = LittleEndian(std::uint32_t{0x0403'02ff});
  EXPECT_EQ(std::string_view(kBytes.data(), kBytes.size()), "\xff\x02\x03\x04");
}

}  // namespace
}  // namespace simile::base
