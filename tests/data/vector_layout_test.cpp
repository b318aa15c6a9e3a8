#include "data/formats/vector_layout.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace simile::data {
namespace {

TEST(DecodeElementsTest, ReadsEveryTypeAtAnyAlignment) {
  const float single = -1.2345678e-20F;
  const double wide = 9.87654321e200;
  std::vector<char> bytes(1 + sizeof wide);
  const auto decode = [&bytes](ElementType type, const void* stored) {
    std::memcpy(bytes.data() + 1, stored, ElementBytes(type));
    double value = 0;
    DecodeElements(type, {bytes.data() + 1, ElementBytes(type)}, {&value, 1});
    return value;
  };
  EXPECT_EQ(decode(ElementType::kFloat32, &single), static_cast<double>(single));
  EXPECT_EQ(decode(ElementType::kFloat64, &wide), wide);
  const std::uint16_t half = 0x3C01;
  EXPECT_EQ(decode(ElementType::kFloat16, &half), 1 + 0x1p-10);
  const std::uint16_t brain = 0xC049;
  EXPECT_EQ(decode(ElementType::kBfloat16, &brain),
            static_cast<double>(std::bit_cast<float>(0xC0490000U)));
}

}  // namespace
}  // namespace simile::data
