#include "observe/process_metrics.h"

#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

namespace simile::observe {
namespace {

TEST(ParseProcessStatTest, CountsFieldsFromTheLastBracket) {
  const auto stat = ParseProcessStat(
      "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 77 33 0 0 20 0 4 0 12345 987654321 222 "
      "18446744073709551615 1 1");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->user_ticks, 77U);
  EXPECT_EQ(stat->system_ticks, 33U);
  EXPECT_EQ(stat->start_ticks, 12345U);
  EXPECT_EQ(stat->virtual_bytes, 987654321U);
  EXPECT_EQ(stat->resident_pages, 222U);
}

TEST(ParseProcessStatTest, ReturnsNothingForATruncatedLine) {
  EXPECT_FALSE(ParseProcessStat("").has_value());
  EXPECT_FALSE(ParseProcessStat("42 (simile").has_value());
  EXPECT_FALSE(ParseProcessStat("42 (simile) S 1 2 3").has_value());
  EXPECT_FALSE(ParseProcessStat("42 (x) S 1 42 42 0 -1 4194560 100 0 0 0 seven 33").has_value());
}

TEST(ProcessCollectorTest, ReadsThisProcess) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : MakeProcessCollector()->Collect()) {
    ASSERT_EQ(family.metric.size(), 1U);
    values[family.name] = family.metric[0].gauge.value;
  }
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  EXPECT_GE(values.at("process_open_fds"), 3);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
  EXPECT_GE(values.at("process_cpu_seconds_total"), 0);
  EXPECT_GT(values.at("process_start_time_seconds"), 1.5e9);
}

}  // namespace
}  // namespace simile::observe
