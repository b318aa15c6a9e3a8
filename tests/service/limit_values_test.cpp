#include "service/limit_values.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::service {
namespace {

using testing::ElementsAreArray;

// The members of Limits as the header declares them, times with their unit.
std::vector<std::string> DeclaredNames() {
  std::ifstream header(SIMILE_SOURCE_DIR "/include/simile/limits.h");
  const std::regex member(R"(^  std::(uint32_t|uint64_t|chrono::milliseconds) (\w+)( =|\{).*)");
  std::vector<std::string> names;
  std::smatch match;
  for (std::string line; std::getline(header, line);) {
    if (!std::regex_match(line, match, member)) continue;
    names.push_back(match[2].str() + (match[1] == "chrono::milliseconds" ? "_ms" : ""));
  }
  return names;
}

TEST(LimitValuesTest, NamesEveryMemberInOrder) {
  std::vector<std::string> names;
  for (const LimitValue& limit : LimitValues(Limits())) names.push_back(limit.name);
  EXPECT_GT(names.size(), 40U);
  EXPECT_THAT(names, ElementsAreArray(DeclaredNames()));
}

TEST(LimitValuesTest, GivesTheValuesInForce) {
  Limits limits;
  limits.k_max = 7;
  limits.rows_max = 1ULL << 40;
  limits.page_lease = std::chrono::milliseconds(1'500);
  const std::vector<LimitValue> values = LimitValues(limits);
  const auto value_of = [&](const std::string& name) {
    const auto place = std::find_if(values.begin(), values.end(),
                                    [&](const LimitValue& limit) { return limit.name == name; });
    return place == values.end() ? 0 : place->value;
  };
  EXPECT_EQ(value_of("k_max"), 7U);
  EXPECT_EQ(value_of("rows_max"), 1ULL << 40);
  EXPECT_EQ(value_of("page_lease_ms"), 1'500U);
}

}  // namespace
}  // namespace simile::service
