#include "service/packed_vector.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

v1::PackedVector Packed(v1::PackedVector::Format format, const std::string& data) {
  v1::PackedVector packed;
  packed.set_format(format);
  packed.set_data(data);
  return packed;
}

std::vector<float> ValuesOf(const query::VectorBytes& numbers) {
  std::vector<float> values(numbers.size());
  numbers.CopyTo(values.data());
  return values;
}

TEST(VectorBytesOfTest, ReadsLittleEndianFloats) {
  // 1.0 and -2.5
  const v1::PackedVector packed =
      Packed(v1::PackedVector::FORMAT_F32_LE, std::string("\0\0\x80\x3F\0\0\x20\xC0", 8));
  const auto numbers = VectorBytesOf({"v"}, packed, packed.data(), 4'096);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(ValuesOf(*numbers), (std::vector<float>{1.0F, -2.5F}));
}

TEST(VectorBytesOfTest, ReadsLittleEndianFp16) {
  // 1.0, -2.5 and the least subnormal
  const v1::PackedVector packed =
      Packed(v1::PackedVector::FORMAT_F16_LE, std::string("\x00\x3C\x00\xC1\x01\x00", 6));
  const auto numbers = VectorBytesOf({"v"}, packed, packed.data(), 4'096);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(ValuesOf(*numbers), (std::vector<float>{1.0F, -2.5F, 0x1p-24F}));
}

}  // namespace
}  // namespace simile::service
