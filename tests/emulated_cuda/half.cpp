#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace emulated_cuda {
namespace {

const float* MakeHalfValues() {
  static std::vector<float> values(65536);
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31U);
    const auto fraction = static_cast<float>(bits & 1023U);
    float value = exponent == 31  ? (fraction > 0 ? std::nanf("") : HUGE_VALF)
                  : exponent == 0 ? std::ldexp(fraction, -24)
                                  : std::ldexp(1024 + fraction, exponent - 25);
    if (bits >= 0x8000U) value = -value;
    values[bits] = value;
  }
  return values.data();
}

// To a whole number; below 2^52.
double Rounded(double magnitude, bool negative, Fp16Rounding rounding) {
  const double down = std::floor(magnitude);
  switch (rounding) {
    case Fp16Rounding::kNearest:
      return (magnitude + 0x1p52) - 0x1p52;
    case Fp16Rounding::kZero:
      return down;
    case Fp16Rounding::kUp:
      return negative ? down : std::ceil(magnitude);
    case Fp16Rounding::kDown:
      return negative ? std::ceil(magnitude) : down;
  }
  return down;
}

}  // namespace

const float* const kHalfValues = MakeHalfValues();

unsigned short HalfBits(double value, Fp16Rounding rounding) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const bool negative = bits >> 63 != 0;
  const unsigned sign = negative ? 0x8000U : 0U;
  const int exponent = static_cast<int>(bits >> 52 & 2047U) - 1023;
  const double magnitude = std::fabs(value);
  if (value != value) return 0x7FFF;
  if (magnitude >= 65536) {
    const bool toward_zero = rounding == Fp16Rounding::kZero ||
                             (rounding == Fp16Rounding::kUp && negative) ||
                             (rounding == Fp16Rounding::kDown && !negative);
    const bool finite = toward_zero && exponent < 1024;
    return static_cast<unsigned short>(sign | (finite ? 0x7BFFU : 0x7C00U));
  }
  // In units of the last bit of an fp16 value of this size; below 2^-14 that is 2^-24 throughout. A
  // carry into the exponent gives the right value, up to infinity.
  const int power = exponent < -14 ? -14 : exponent;
  std::uint64_t unit_bits = static_cast<std::uint64_t>(10 - power + 1023) << 52;
  double units;
  std::memcpy(&units, &unit_bits, sizeof(units));
  const auto count = static_cast<unsigned>(Rounded(magnitude * units, negative, rounding));
  return static_cast<unsigned short>(sign | ((static_cast<unsigned>(power + 14) << 10) + count));
}

// The product is exact in double, the sum may not be: it is rounded to odd, so that the final
// rounding to fp16 is correct (Boldo and Melquiond).
unsigned short FusedHalf(float a, float b, float c) {
  const double product = static_cast<double>(a) * b, addend = c;
  double sum = product + addend;
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (addend - part);
  if (lost != 0 && lost == lost) {
    std::uint64_t bits;
    std::memcpy(&bits, &sum, sizeof(bits));
    if (bits % 2 == 0) {
      const bool away_from_zero = (lost > 0) == (sum > 0);
      bits += away_from_zero ? 1 : ~std::uint64_t{0};
      std::memcpy(&sum, &bits, sizeof(bits));
    }
  }
  return HalfBits(sum);
}

}  // namespace emulated_cuda
