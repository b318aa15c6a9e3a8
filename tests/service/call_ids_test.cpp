#include "service/calls/call_ids.h"

#include <set>
#include <string>
#include <vector>

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(RequestIdTest, AllowsPrintableAsciiUpToItsMaximum) {
  EXPECT_TRUE(IsUsableRequestId("4f1c-77"));
  EXPECT_TRUE(IsUsableRequestId("with space ~"));
  EXPECT_TRUE(IsUsableRequestId(std::string(128, 'x')));
  EXPECT_FALSE(IsUsableRequestId(""));
  EXPECT_FALSE(IsUsableRequestId(std::string(129, 'x')));
  EXPECT_FALSE(IsUsableRequestId("a\nb"));
  EXPECT_FALSE(IsUsableRequestId("caf\xC3\xA9"));
  EXPECT_FALSE(IsUsableRequestId(std::string("a\0b", 3)));
}

TEST(RequestIdsTest, MakesDistinctUsableIds) {
  RequestIds ids(42);
  std::set<std::string> seen;
  for (int index = 0; index < 10'000; ++index) {
    const std::string id = ids.Next();
    ASSERT_EQ(id.size(), 16U);
    ASSERT_TRUE(IsUsableRequestId(id));
    ASSERT_TRUE(seen.insert(id).second) << id << " came twice";
  }
}

TEST(RequestIdsTest, DiffersBetweenSeeds) { EXPECT_NE(RequestIds(1).Next(), RequestIds(2).Next()); }

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";

TEST(TraceParentTest, ReadsTraceAndSpan) {
  for (const char* const flags : {"00", "01", "ff"}) {
    const auto parsed = ParseTraceParent(absl::StrCat("00-", kTrace, "-", kSpan, "-", flags));
    ASSERT_TRUE(parsed.has_value()) << flags;
    EXPECT_EQ(parsed->trace_id, kTrace);
    EXPECT_EQ(parsed->parent_span_id, kSpan);
  }
}

TEST(TraceParentTest, ReadsTheBeginningOfLaterVersions) {
  for (const char* const rest : {"", "-", "-what-is-not-known-yet"}) {
    const auto parsed = ParseTraceParent(absl::StrCat("cc-", kTrace, "-", kSpan, "-01", rest));
    ASSERT_TRUE(parsed.has_value()) << rest;
    EXPECT_EQ(parsed->trace_id, kTrace);
    EXPECT_EQ(parsed->parent_span_id, kSpan);
  }
}

TEST(TraceParentTest, IgnoresWhatTheStandardDoesNotAllow) {
  const std::string zeros(32, '0');
  const std::vector<std::string> headers = {
      std::string(),
      std::string("00"),
      "0x-" + kTrace + "-" + kSpan + "-01",             // not a version
      "01-" + kTrace + "-" + kSpan + "-01.extra",       // no later version continues so
      "ff-" + kTrace + "-" + kSpan + "-01",             // never a version
      "00-" + kTrace + "-" + kSpan,                     // no flags
      "00-" + kTrace + "-" + kSpan + "-1",              // short flags
      "00-" + kTrace + "-" + kSpan + "-01-extra",       // longer than version 00
      "00-" + kTrace + "-" + kSpan + "-0g",             // not hexadecimal
      "00-" + zeros + "-" + kSpan + "-01",              // no trace
      "00-" + kTrace + "-" + zeros.substr(16) + "-01",  // no span
      "00-" + kTrace.substr(1) + "-" + kSpan + "0-01",  // short trace
      "00_" + kTrace + "-" + kSpan + "-01",
      "00-" + kTrace + "_" + kSpan + "-01",
      "00-" + kTrace + "-" + kSpan + "_01",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kSpan + "-01",  // upper case
      "00-" + kTrace + "-00F067AA0BA902B7-01",
      " 00-" + kTrace + "-" + kSpan + "-0",
  };
  for (const std::string& header : headers) {
    EXPECT_FALSE(ParseTraceParent(header).has_value()) << header;
  }
}

}  // namespace
}  // namespace simile::service
