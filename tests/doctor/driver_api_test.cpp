#include "doctor/driver_api.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace simile::doctor {
namespace {

const std::vector<std::string> kUuids = {"GPU-aa01", "GPU-bb02"};

TEST(VisibleCardsTest, KnowWhichValuesHideAllCards) {
  for (const char* value : {"", "-1", "void", "none", "NoDevFiles", "all", "2", "GPU-cc", "-1,0"}) {
    EXPECT_TRUE(HidesAllCards(value, kUuids)) << value;
  }
  for (const char* value : {"0", "1", " 1 , 7", "0,-1", "GPU-bb", "GPU-aa01,2", "MIG-aa01"}) {
    EXPECT_FALSE(HidesAllCards(value, kUuids)) << value;
  }
}

TEST(VisibleCardsTest, BlameNoValueOfUnknownCards) {
  EXPECT_FALSE(HidesAllCards("7", {}));
  EXPECT_FALSE(HidesAllCards("GPU-cc", {}));
  EXPECT_FALSE(HidesAllCards("GPU-cc", std::vector<std::string>{"GPU-aa01", ""}));
  EXPECT_TRUE(HidesAllCards("-1", {}));
}

TEST(VisibleCardsTest, NameTheCardThatADeviceIs) {
  EXPECT_EQ(FindVisibleCard("1,0", 0, kUuids), 1U);
  EXPECT_EQ(FindVisibleCard("1,0", 1, kUuids), 0U);
  EXPECT_EQ(FindVisibleCard("GPU-bb", 0, kUuids), 1U);
  for (const char* value : {"", "-1", "GPU-cc", "MIG-aa01"}) {
    EXPECT_EQ(FindVisibleCard(value, 0, kUuids), std::nullopt) << value;
  }
  EXPECT_EQ(FindVisibleCard("1", 1, kUuids), std::nullopt);
}

}  // namespace
}  // namespace simile::doctor
