#include "service/page_token.h"

#include <string>

#include <absl/strings/escaping.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/stable_hash.h"

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
std::string TokenOf(std::string bytes) {
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
  EXPECT_EQ(TokenOf(bytes), kTokenText);
  std::string later = bytes;
  later[0] = 2;
  for (const std::string& text : {TokenOf(later), TokenOf("\2"), TokenOf(bytes + "more")}) {
    EXPECT_EQ(ReadPageToken(text).status(),
              base::Error(base::ErrorReason::kInvalidPageToken,
                          "options.page_token: a server of another version wrote it, in a format "
                          "that this one does not read; start again with the first page",
                          "options.page_token"));
  }
}

}  // namespace
}  // namespace simile::service
