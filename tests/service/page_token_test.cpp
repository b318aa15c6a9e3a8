#include "service/page_token.h"

#include <gtest/gtest.h>

namespace simile::service {
namespace {

const PageToken kToken{.snapshot_version = 3,
                       .loaded_at = std::chrono::system_clock::time_point(
                           std::chrono::system_clock::duration(1'763'000'000'123'456'789)),
                       .page = 7,
                       .request_hash = 0xfedc'ba98'7654'3210U};

TEST(PageTokenTest, ReadsWhatItWrote) {
  const auto read = ReadPageToken(WritePageToken(kToken));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, kToken);
}

TEST(PageTokenTest, IsSafeInAUrl) {
  EXPECT_EQ(WritePageToken(kToken).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                     "abcdefghijklmnopqrstuvwxyz0123456789-_="),
            std::string::npos);
}

TEST(PageTokenTest, RefusesOtherText) {
  const std::string token = WritePageToken(kToken);
  for (const std::string& text : {std::string("abc"), std::string("!"), token.substr(4),
                                  token + "AAAA", std::string("x y")}) {
    EXPECT_EQ(
        ReadPageToken(text).status(),
        absl::InvalidArgumentError("options.page_token: not a page token; send an answer's "
                                   "next_page_token unchanged, or leave it out for the first page"))
        << text;
  }
}

}  // namespace
}  // namespace simile::service
