#include "cli/quantity_text.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(ByteQuantityTest, ReadsNumbersWithUnits) {
  EXPECT_EQ(ParseBytes("16GiB").value(), 16 * 0x1p30);
  EXPECT_EQ(ParseBytes("80 GB").value(), 80e9);
  EXPECT_EQ(ParseBytes("1.5TiB").value(), 1.5 * 0x1p40);
  EXPECT_EQ(ParseBytes("512MiB").value(), 512 * 0x1p20);
  EXPECT_EQ(ParseBytes("100B").value(), 100);
  EXPECT_EQ(ParseBandwidth("300GB/s").value(), 300e9);
  EXPECT_EQ(ParseBandwidth("4.8 TB/s").value(), 4.8e12);
}

TEST(ByteQuantityTest, SaysWhatWouldBeRight) {
  for (const char* const wrong :
       {"", "16", "GiB", "-1GiB", "0GiB", "16gib", "16 GiB/s", "nanGiB"}) {
    EXPECT_EQ(ParseBytes(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(ParseBytes("16G").status().message(),
            "\"16G\" is not a quantity; give a number and a unit, as in 16GiB");
  EXPECT_EQ(ParseBandwidth("300GB").status().message(),
            "\"300GB\" is not a quantity; give a number and a unit, as in 300GB/s");
}

TEST(ByteQuantityTest, RefusesWhatNoMachineHas) {
  EXPECT_EQ(ParseBytes("1e30B").status().message(), "\"1e30B\" is out of range: 1B to 1024TiB");
  EXPECT_EQ(ParseBytes("0.1B").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseBandwidth("1025TiB/s").status().message(),
            "\"1025TiB/s\" is out of range: 1B/s to 1024TiB/s");
  EXPECT_EQ(ParseBytes("1024TiB").value(), 0x1p50);
}

}  // namespace
}  // namespace simile::cli
