#include "service/admin_handlers.h"

#include <algorithm>
#include <fstream>
#include <sstream>
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
  std::vector<std::string> names;
  for (std::string line; std::getline(header, line);) {
    std::istringstream words(line);
    std::string type;
    std::string name;
    words >> type >> name;
    const bool is_time = type == "std::chrono::milliseconds";
    if (!is_time && type != "std::uint32_t" && type != "std::uint64_t") continue;
    names.push_back(name.substr(0, name.find('{')) + (is_time ? "_ms" : ""));
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
