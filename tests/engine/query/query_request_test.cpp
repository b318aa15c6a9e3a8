#include "engine/query/query_request.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fp16.h"
#include "data/formats/equal_rows.h"

namespace simile::engine {
namespace {

std::vector<float> RandomValues(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double SumSquares(const std::vector<float>& values) {
  std::vector<float> copied(values.size());
  return VectorBytes(values).CopyTo(copied.data());
}

TEST(VectorBytesTest, AreReadAtAnyAddress) {
  for (const std::size_t count : {1, 7, 8, 9, 31, 384, 1'000}) {
    const std::vector<float> values = RandomValues(count);
    for (std::size_t offset = 0; offset < 9; ++offset) {
      std::string bytes(offset, 'x');
      bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
      const VectorBytes numbers(VectorBytes::Format::kF32, std::string_view(bytes).substr(offset));
      ASSERT_EQ(numbers.size(), count);
      std::vector<float> copied(count);
      EXPECT_EQ(numbers.CopyTo(copied.data()), SumSquares(values));
      EXPECT_EQ(copied, values) << offset;
    }
  }
}

TEST(VectorBytesTest, WidensEveryFp16NumberExactly) {
  std::string bytes("x");
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    bytes.push_back(static_cast<char>(bits & 0xFF));
    bytes.push_back(static_cast<char>(bits >> 8));
  }
  const VectorBytes numbers(VectorBytes::Format::kF16, std::string_view(bytes).substr(1));
  ASSERT_EQ(numbers.size(), 0x10000U);
  std::vector<float> values(numbers.size());
  EXPECT_TRUE(std::isnan(numbers.CopyTo(values.data())));
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[bits]),
              std::bit_cast<std::uint32_t>(base::FloatFromFp16(static_cast<std::uint16_t>(bits))))
        << bits;
  }
}

TEST(VectorBytesTest, HaveTheLengthThatRowsOfFilesHave) {
  for (const std::size_t count : {1, 7, 8, 9, 15, 16, 100, 384}) {
    std::vector<float> values = RandomValues(count);
    const std::vector<double> row(values.begin(), values.end());
    const std::vector<double> weights(count, 1.0);
    EXPECT_EQ(SumSquares(values), data::SumRow(row, weights).squares) << count;
  }
}

TEST(VectorBytesTest, HaveAFiniteLengthExactlyWhenAllAre) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(std::isfinite(SumSquares(std::vector<float>(4'096, -kMax))));
  EXPECT_GT(SumSquares(std::vector<float>{std::numeric_limits<float>::denorm_min()}), 0);
  for (const std::size_t count : {1, 8, 9, 35}) {
    for (std::size_t place = 0; place < count; ++place) {
      for (const float bad : kBad) {
        std::vector<float> values = RandomValues(count);
        values[place] = bad;
        EXPECT_FALSE(std::isfinite(SumSquares(values))) << place << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace simile::engine
