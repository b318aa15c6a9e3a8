#pragma once

// CUDA's arithmetic of one thread. The suffixes are roundings: _rn to nearest even, _rz to zero,
// _ru up, _rd down.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulated/execution.h"

namespace emulated_cuda {

template <class To, class From>
To BitsOf(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

enum class Rounding { kZero, kUp, kDown };

// `nearest` is the float nearest to an exact value that is larger by `rest`; only the sign of
// `rest` matters.
inline float Directed(float nearest, double rest, Rounding rounding) {
  const float infinity = std::numeric_limits<float>::infinity();
  const bool up = rounding == Rounding::kUp || (rounding == Rounding::kZero && nearest < 0);
  if (rest > 0 && up) return std::nextafterf(nearest, infinity);
  if (rest < 0 && !up) return std::nextafterf(nearest, -infinity);
  return nearest;
}

// a * b + c with one rounding. The product of two floats is exact in double; what the sum loses is
// found by Knuth's TwoSum.
inline float DirectedFma(float a, float b, float c, Rounding rounding) {
  const double product = static_cast<double>(a) * b, addend = c, sum = product + addend;
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (addend - part);
  const auto nearest = static_cast<float>(sum);
  const double rest = sum - static_cast<double>(nearest);
  return Directed(nearest, rest != 0 ? rest : lost, rounding);
}
inline float DirectedDivide(float a, float b, Rounding rounding) {
  const float nearest = a / b;
  const double rest = static_cast<double>(a) - static_cast<double>(nearest) * b;  // exact
  return Directed(nearest, b > 0 ? rest : -rest, rounding);
}
inline float DirectedRoot(float a, Rounding rounding) {
  const float nearest = std::sqrt(a);
  return Directed(nearest, static_cast<double>(a) - static_cast<double>(nearest) * nearest,
                  rounding);
}
inline float DirectedFloat(double a, Rounding rounding) {
  const auto nearest = static_cast<float>(a);
  return Directed(nearest, a - static_cast<double>(nearest), rounding);
}

// Conversions to integers saturate, and NaN becomes 0.
template <class To>
To Saturated(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  if (value >= static_cast<double>(std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

template <class Lane>
int DotOfFour(int a, int b, int c) {
  Lane x[4], y[4];
  std::memcpy(x, &a, 4);
  std::memcpy(y, &b, 4);
  auto sum = static_cast<unsigned>(c);
  for (int i = 0; i < 4; ++i) sum += static_cast<unsigned>(int{x[i]} * int{y[i]});
  return static_cast<int>(sum);
}

}  // namespace emulated_cuda

// NOLINTBEGIN: these names are CUDA's, not ours.

using std::isfinite;
using std::isinf;
using std::isnan;

inline unsigned __float_as_uint(float v) { return emulated_cuda::BitsOf<unsigned>(v); }
inline int __float_as_int(float v) { return emulated_cuda::BitsOf<int>(v); }
inline float __uint_as_float(unsigned v) { return emulated_cuda::BitsOf<float>(v); }
inline float __int_as_float(int v) { return emulated_cuda::BitsOf<float>(v); }
inline long long __double_as_longlong(double v) { return emulated_cuda::BitsOf<long long>(v); }
inline double __longlong_as_double(long long v) { return emulated_cuda::BitsOf<double>(v); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1.0F / a; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __double2float_rn(double a) { return static_cast<float>(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float rsqrtf(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1.0F) : 0.0F; }

#define EMULATED_ROUNDING(suffix, rounding)                                               \
  inline float __fmaf_##suffix(float a, float b, float c) {                               \
    return emulated_cuda::DirectedFma(a, b, c, emulated_cuda::Rounding::rounding);        \
  }                                                                                       \
  inline float __fadd_##suffix(float a, float b) { return __fmaf_##suffix(a, 1.0F, b); }  \
  inline float __fsub_##suffix(float a, float b) { return __fmaf_##suffix(b, -1.0F, a); } \
  inline float __fmul_##suffix(float a, float b) {                                        \
    return emulated_cuda::DirectedFloat(static_cast<double>(a) * b,                       \
                                        emulated_cuda::Rounding::rounding);               \
  }                                                                                       \
  inline float __fdiv_##suffix(float a, float b) {                                        \
    return emulated_cuda::DirectedDivide(a, b, emulated_cuda::Rounding::rounding);        \
  }                                                                                       \
  inline float __fsqrt_##suffix(float a) {                                                \
    return emulated_cuda::DirectedRoot(a, emulated_cuda::Rounding::rounding);             \
  }                                                                                       \
  inline float __double2float_##suffix(double a) {                                        \
    return emulated_cuda::DirectedFloat(a, emulated_cuda::Rounding::rounding);            \
  }
EMULATED_ROUNDING(rz, kZero)
EMULATED_ROUNDING(ru, kUp)
EMULATED_ROUNDING(rd, kDown)
#undef EMULATED_ROUNDING

inline float __int2float_rn(int v) { return static_cast<float>(v); }
inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
inline int __float2int_rn(float v) { return emulated_cuda::Saturated<int>(std::nearbyint(v)); }
inline int __float2int_rz(float v) { return emulated_cuda::Saturated<int>(std::trunc(v)); }
inline int __float2int_ru(float v) { return emulated_cuda::Saturated<int>(std::ceil(v)); }
inline int __float2int_rd(float v) { return emulated_cuda::Saturated<int>(std::floor(v)); }
inline unsigned __float2uint_rn(float v) {
  return emulated_cuda::Saturated<unsigned>(std::nearbyint(v));
}
inline unsigned __float2uint_rz(float v) {
  return emulated_cuda::Saturated<unsigned>(std::trunc(v));
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v != 0 ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __clzll(long long v) {
  return v != 0 ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64;
}
inline unsigned __brev(unsigned v) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (v >> i & 1U) << (31 - i);
  return reversed;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 0xFU;
    auto byte = static_cast<unsigned>(bytes >> (8 * (choice & 7U)) & 0xFFU);
    if ((choice & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xFFU : 0;  // repeats the sign
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31U) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31U));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __dp4a(int a, int b, int c) { return emulated_cuda::DotOfFour<std::int8_t>(a, b, c); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return static_cast<unsigned>(emulated_cuda::DotOfFour<std::uint8_t>(
      static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)));
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcg(T* address, T value) {
  *address = value;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}

// Not a clock: it only grows.
inline long long clock64() {
  static thread_local long long ticks = 0;
  return ++ticks;
}

#define EMULATED_MIN_MAX(type)                              \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)
#undef EMULATED_MIN_MAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

// NOLINTEND
