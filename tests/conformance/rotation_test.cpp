#include "conformance/rotation.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace simile::conformance {
namespace {

constexpr std::uint64_t kCases = 200;

std::vector<std::uint64_t> Covered(const char* text) {
  const Rotation rotation(text);
  std::vector<std::uint64_t> covered;
  for (std::uint64_t number = 0; number < kCases; ++number) {
    if (rotation.Covers(number)) covered.push_back(number);
  }
  return covered;
}

TEST(RotationTest, CoversAQuarterOfTheCasesInEveryRun) {
  for (const char* text : {"0", "1", "5", "6", "18446744073709551615"})
    EXPECT_EQ(Covered(text).size(), kCases / 4) << text;
}

TEST(RotationTest, CoversEveryCaseInSixRotationsInARow) {
  std::vector<int> times(kCases, 0);
  for (const char* text : {"7", "8", "9", "10", "11", "12"}) {
    for (const std::uint64_t number : Covered(text)) ++times[number];
  }
  for (std::uint64_t number = 0; number < kCases; ++number)
    EXPECT_EQ(times[number], number % 20 < 2 ? 6 : 1) << number;
}

TEST(RotationTest, CoversOneCaseOfEachSlotInTwenty) {
  for (const char* text : {"0", "3"}) {
    std::vector<int> of_slot(Rotation::kSlots, 0);
    for (const std::uint64_t number : Covered(text)) ++of_slot[Rotation::SlotOf(number)];
    for (const int count : of_slot) EXPECT_EQ(count, kCases / 20);
  }
}

TEST(RotationTest, CoversEveryVariantInEveryRun) {
  for (const char* text : {"0", "1", "2", "3", "4", "5"}) {
    std::set<std::uint64_t> variants;
    for (const std::uint64_t number : Covered(text)) {
      if (number < 20) variants.insert(Rotation::VariantOf(number) % 4);
    }
    EXPECT_EQ(variants.size(), 4U) << text;
  }
}

TEST(RotationTest, CoversEverythingForAllAndForAnythingThatIsNoNumber) {
  for (const char* text : {"all", "", "3x", "one"}) EXPECT_EQ(Covered(text).size(), kCases) << text;
}

TEST(RotationTest, IsTheFirstWhenItIsNotSet) {
  EXPECT_EQ(Covered(nullptr), Covered("0"));
  EXPECT_EQ(Rotation(nullptr).text(), "0");
}

}  // namespace
}  // namespace simile::conformance
