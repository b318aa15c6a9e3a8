// Intrinsics compared with their definitions, and fp16 arithmetic with a slow reference.

#include <cuda_fp16.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "emulated_cuda/aligned_sum.h"
#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"

namespace emulated_cuda {
namespace {

double HalfValue(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const int fraction = static_cast<int>(bits & 1023U);
  return std::ldexp(exponent > 0 ? 1024 + fraction : fraction, (exponent > 0 ? exponent : 1) - 25);
}

// The nearest fp16 value, ties to even, by search over all finite ones.
unsigned short SlowHalf(long double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const long double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7FFF;
  if (magnitude >= 65520) return static_cast<unsigned short>(sign | 0x7C00U);
  unsigned low = 0, high = 0x7BFF;
  while (low < high) {
    const unsigned middle = (low + high + 1) / 2;
    if (static_cast<long double>(HalfValue(middle)) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const long double next = low == 0x7BFF ? 65536.0 : HalfValue(low + 1);
  const long double down = magnitude - static_cast<long double>(HalfValue(low)),
                    up = next - magnitude;
  if (up < down || (up == down && low % 2 == 1)) ++low;
  return static_cast<unsigned short>(sign | low);
}

bool SameHalf(__half half, unsigned short bits) {
  return __half_as_ushort(half) == bits || (__hisnan(half) && (bits & 0x7FFFU) > 0x7C00U);
}

TEST(HalfTest, ConvertsEveryHalfToFloatAndBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const __half half = __ushort_as_half(static_cast<unsigned short>(bits));
    if (__hisnan(half)) continue;
    EXPECT_EQ(__half_as_ushort(__float2half(__half2float(half))), bits);
    if (bits < 0x7C00) {
      EXPECT_EQ(__half2float(half), HalfValue(bits));
    }
  }
}

TEST(HalfTest, RoundsToNearestEvenWhenConverted) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Random floats, and floats near fp16 values.
    const auto bits = static_cast<unsigned>(random());
    const float any = std::bit_cast<float>(bits);
    const float near = std::bit_cast<float>((std::bit_cast<unsigned>(__half2float(__ushort_as_half(
                                                 static_cast<unsigned short>(bits)))) +
                                             (bits >> 16 & 0x1000U)) |
                                            (bits >> 30));
    for (const float value : {any, near}) {
      if (std::isnan(value)) continue;
      ASSERT_EQ(__half_as_ushort(__float2half(value)), SlowHalf(value)) << value;
    }
  }
  EXPECT_EQ(__half_as_ushort(__float2half(65519.996F)), 0x7BFF);
  EXPECT_EQ(__half_as_ushort(__float2half(65520.0F)), 0x7C00);
  EXPECT_EQ(__half_as_ushort(__float2half(-0.0F)), 0x8000);
}

TEST(HalfTest, RoundsInTheGivenDirection) {
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<unsigned>(random()));
    if (!std::isfinite(value)) continue;
    const float up = __half2float(__float2half_ru(value));
    const float down = __half2float(__float2half_rd(value));
    const float zero = __half2float(__float2half_rz(value));
    ASSERT_LE(down, value);
    ASSERT_GE(up, value);
    ASSERT_EQ(zero, value > 0 ? down : up);
    const float nearest = __half2float(__float2half(value));
    ASSERT_TRUE(nearest == up || nearest == down);
  }
}

TEST(HalfTest, ArithmeticRoundsTheExactResultOnce) {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const auto pick = [&] { return __ushort_as_half(static_cast<unsigned short>(random())); };
    const __half a = pick(), b = pick(), c = pick();
    if (!std::isfinite(__half2float(a)) || !std::isfinite(__half2float(b)) ||
        !std::isfinite(__half2float(c))) {
      continue;
    }
    const long double x = __half2float(a), y = __half2float(b), z = __half2float(c);
    ASSERT_TRUE(SameHalf(__hadd(a, b), SlowHalf(x + y)));
    ASSERT_TRUE(SameHalf(__hsub(a, b), SlowHalf(x - y)));
    ASSERT_TRUE(SameHalf(__hmul(a, b), SlowHalf(x * y)));
    ASSERT_EQ(__hlt(a, b), x < y);
    // 64 bits hold the sum unless the parts are further apart than that.
    if (x * y + z != 0) {
      ASSERT_TRUE(SameHalf(__hfma(a, b, c), SlowHalf(x * y + z)));
    }
    if (y != 0) {
      ASSERT_TRUE(SameHalf(__hdiv(a, b), SlowHalf(x / y)));
    }
  }
  // The product is a tie between fp16 values; the last addend, far below a double's last bit,
  // breaks it.
  const __half one = __float2half(1.0F + 0x1p-10F), half = __float2half(0x1p5F * 1.5F);
  const __half tiny = __ushort_as_half(1);
  const double exact = (1 + 0x1p-10) * 48;
  EXPECT_GT(__half2float(__hfma(one, half, tiny)) + 1, exact);
  EXPECT_EQ(FusedHalf(1 + 0x1p-11F, 0x1p15F, -0x1p-24F), SlowHalf(0x1p15L + 16 - 0x1p-24L));
  EXPECT_EQ(FusedHalf(1 + 0x1p-11F, 0x1p15F, 0x1p-24F), SlowHalf(0x1p15L + 16 + 0x1p-24L));
}

TEST(ArithmeticTest, DirectedRoundingEnclosesTheExactResult) {
  std::mt19937 random(4);
  for (int i = 0; i < 100000; ++i) {
    const auto pick = [&] {
      return std::ldexp(static_cast<float>(static_cast<int>(random())),
                        static_cast<int>(random() % 40) - 50);
    };
    const float a = pick(), b = pick(), c = pick();
    const long double x = a, y = b, z = c;
    const auto encloses = [](float down, long double exact, float up) {
      return static_cast<long double>(down) <= exact && exact <= static_cast<long double>(up) &&
             (down == up || std::nextafterf(down, up) == up);
    };
    ASSERT_TRUE(encloses(__fadd_rd(a, b), x + y, __fadd_ru(a, b)));
    ASSERT_TRUE(encloses(__fsub_rd(a, b), x - y, __fsub_ru(a, b)));
    ASSERT_TRUE(encloses(__fmul_rd(a, b), x * y, __fmul_ru(a, b)));
    ASSERT_TRUE(encloses(__fmaf_rd(a, b, c), x * y + z, __fmaf_ru(a, b, c)));
    ASSERT_TRUE(
        encloses(__double2float_rd(double{a} * b), x * y, __double2float_ru(double{a} * b)));
    if (b != 0) {
      ASSERT_TRUE(encloses(__fdiv_rd(a, b), x / y, __fdiv_ru(a, b)));
    }
    if (a > 0) {
      ASSERT_TRUE(encloses(__fsqrt_rd(a), std::sqrt(x), __fsqrt_ru(a)));
    }
    ASSERT_EQ(__fmul_rz(a, b), a * b > 0 ? __fmul_rd(a, b) : __fmul_ru(a, b));
  }
}

TEST(ArithmeticTest, ConversionsSaturateWhenOutOfRange) {
  EXPECT_EQ(__float2int_rn(2.5F), 2);
  EXPECT_EQ(__float2int_ru(2.1F), 3);
  EXPECT_EQ(__float2int_rd(-2.1F), -3);
  EXPECT_EQ(__float2int_rz(-2.9F), -2);
  EXPECT_EQ(__float2int_rn(1e20F), 2147483647);
  EXPECT_EQ(__float2uint_rz(-1.0F), 0U);
  EXPECT_EQ(__float2int_rn(NAN), 0);
}

class IntrinsicsTest : public testing::TestWithParam<std::uint64_t> {};

// The definitions in CUDA's programming guide, lane by lane.
std::array<int, simile::samples::kIntrinsicRows> Expected(int lane) {
  const auto unsigned_lane = static_cast<unsigned>(lane);
  unsigned reversed = 0;
  for (unsigned i = 0; i < 32; ++i) reversed |= (unsigned_lane >> i & 1U) << (31 - i);
  return {5,
          lane / 8 * 8 + 3,
          lane % 16 + 3 < 16 ? lane + 3 : lane,
          lane >= 2 ? lane - 2 : lane,
          lane ^ 7,
          static_cast<int>(0x49249249U),
          2,
          496,
          -40,
          0,
          31,
          lane ^ 1,
          16 * 4 + 2,
          std::popcount(unsigned_lane) * 10000 +
              (lane == 0 ? 0 : std::countr_zero(unsigned_lane) + 1) * 100 +
              std::countl_zero(unsigned_lane),
          static_cast<int>(0xFU << lane / 4 * 4),
          496,
          31,
          -1,
          0,
          1 * 5 - 2 * 5 + 3 * 7 + 4 * 8 + lane,
          static_cast<int>(0x77115500U),
          496,
          static_cast<int>(reversed),
          static_cast<int>(0x6789ABCDU)};
}

TEST_P(IntrinsicsTest, MatchCudasDefinitions) {
  ResetDevice(WithSeed(GetParam()));
  const DeviceArray<int> out(std::size_t{32} * simile::samples::kIntrinsicRows);
  ASSERT_EQ(simile::samples::LaunchIntrinsics(out.data(), nullptr), cudaSuccess);
  const std::vector<int> got = out.Read();
  EXPECT_EQ(TakeReport(), "");
  for (int lane = 0; lane < 32; ++lane) {
    const auto expected = Expected(lane);
    for (std::size_t row = 0; row < expected.size(); ++row) {
      EXPECT_EQ(got[row * 32 + static_cast<std::size_t>(lane)], expected[row])
          << "row " << row << ", lane " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IntrinsicsTest, testing::Range<std::uint64_t>(0, 8));

TEST(AlignedSumTest, CutsEveryTermAsTheLargestOneSays) {
  // One after the other these sum to 1 + 2.25 * 2^-23.
  constexpr std::array kProducts{0x1.8p-24, 0x1.8p-24, 0x1.8p-24, 1.0};
  const auto sum_of = [&](const SumRule& rule) {
    return AddAligned(0, kProducts.data(), kProducts.size(), rule.fraction_bits);
  };
  EXPECT_EQ(sum_of(kVoltaSums), 1.0F) << "each loses 0.75 * 2^-23";
  EXPECT_EQ(sum_of(kAmpereSums), 1.0F + 0x1p-23F) << "each loses 0.25, and the sum 0.5";
  EXPECT_EQ(sum_of(kHopperSums), 1.0F + 0x1p-22F) << "none loses, and the sum 0.25";
}

TEST(AlignedSumTest, CutsTowardsZeroAndTakesAnyFloat) {
  constexpr std::array kNegative{-0x1.8p-23, 0x1.8p-23, -0x1p-24, 0.0};
  EXPECT_EQ(AddAligned(-1, kNegative.data(), 4, 23), -1.0F) << "opposite ones cancel";
  EXPECT_EQ(AddAligned(-1, kNegative.data(), 1, 23), -1.0F - 0x1p-23F);
  EXPECT_EQ(AddAligned(-1, kNegative.data() + 1, 1, 23), -1.0F + 0x1p-23F);
  constexpr std::array kNone{0.0, 0.0};
  EXPECT_EQ(AddAligned(0, kNone.data(), 2, 23), 0.0F);
  EXPECT_EQ(AddAligned(-1e30F, kNegative.data(), 4, 23), -1e30F);
  EXPECT_EQ(AddAligned(0x1p-149F, kNone.data(), 2, 25), 0x1p-149F);
  EXPECT_TRUE(std::isnan(AddAligned(NAN, kNegative.data(), 4, 23)));
  constexpr std::array kInfinite{HUGE_VAL, 1.0};
  EXPECT_EQ(AddAligned(1, kInfinite.data(), 2, 23), HUGE_VALF);
}

std::vector<float> MmaOf(const std::vector<unsigned short>& a, const std::vector<unsigned short>& b,
                         const std::vector<float>& sums) {
  const DeviceArray<unsigned short> d_a(a), d_b(b);
  const DeviceArray<float> d_sums(sums);
  EXPECT_EQ(simile::samples::LaunchMma(d_a.data(), d_b.data(), d_sums.data(), nullptr),
            cudaSuccess);
  return d_sums.Read();
}

TEST(MmaTest, IsExactOnSmallIntegersUnderEverySeed) {
  std::mt19937 random(5);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    ResetDevice(WithSeed(seed));
    std::vector<unsigned short> a(256), b(128);
    std::vector<float> sums(128);
    const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 7) - 3); };
    for (auto& value : a) value = __half_as_ushort(__float2half(small()));
    for (auto& value : b) value = __half_as_ushort(__float2half(small()));
    for (auto& value : sums) value = small();
    const std::vector<float> got = MmaOf(a, b, sums);
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        float expected = sums[row * 8 + column];
        for (std::size_t k = 0; k < 16; ++k) {
          expected += __half2float(__ushort_as_half(a[row * 16 + k])) *
                      __half2float(__ushort_as_half(b[column * 16 + k]));
        }
        EXPECT_EQ(got[row * 8 + column], expected);
      }
    }
  }
}

TEST(MmaTest, CutsWhenTheSeedIsOddAndRoundsOnceWhenEven) {
  // 1 + 16 * 2^-24, in parts that a float at 1 cannot hold: 2^-23 is its last bit.
  const std::vector<unsigned short> a(256, __half_as_ushort(__float2half(0x1p-12F)));
  const std::vector<unsigned short> b(128, __half_as_ushort(__float2half(0x1p-12F)));
  const std::vector<float> ones(128, 1.0F);
  ResetDevice(WithSeed(2));
  EXPECT_EQ(MmaOf(a, b, ones)[0], 1.0F + 0x1p-20F);
  ResetDevice(WithSeed(3));
  EXPECT_EQ(MmaOf(a, b, ones)[0], 1.0F);
}

TEST(MmaTest, IsExactOnBytes) {
  std::mt19937 random(7);
  ResetDevice(WithSeed(1));
  std::vector<signed char> a(16 * 32), b(8 * 32);
  std::vector<int> sums(128);
  for (auto& value : a) value = static_cast<signed char>(random());
  for (auto& value : b) value = static_cast<signed char>(random());
  for (auto& value : sums) value = static_cast<int>(random() % 1'000) - 500;
  const DeviceArray<signed char> d_a(a), d_b(b);
  const DeviceArray<int> d_sums(sums);
  ASSERT_EQ(simile::samples::LaunchIntegerMma(d_a.data(), d_b.data(), d_sums.data(), nullptr),
            cudaSuccess);
  const std::vector<int> got = d_sums.Read();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      int expected = sums[row * 8 + column];
      for (std::size_t k = 0; k < 32; ++k) expected += a[row * 32 + k] * b[column * 32 + k];
      EXPECT_EQ(got[row * 8 + column], expected);
    }
  }
}

}  // namespace
}  // namespace emulated_cuda
