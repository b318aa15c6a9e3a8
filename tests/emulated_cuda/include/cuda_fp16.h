#pragma once

// CUDA's half precision. One operation on floats and one rounding is exact for + - * and /, as a
// float has more than twice the bits; a fused multiply-add takes more care.

#include <cmath>
#include <cstdint>

#include "emulated/arithmetic.h"

namespace emulated_cuda {

// The value of every fp16 number, by its bits.
extern const float* const kHalfValues;

enum class Fp16Rounding { kNearest, kZero, kUp, kDown };
unsigned short HalfBits(double value, Fp16Rounding rounding = Fp16Rounding::kNearest);
unsigned short FusedHalf(float a, float b, float c);

}  // namespace emulated_cuda

// NOLINTBEGIN: these names are CUDA's, not ours.

struct __half_raw {
  unsigned short x;
};
struct __align__(2) __half {
  unsigned short bits;
  __half() = default;
  __half(__half_raw raw) : bits(raw.x) {}
  __half(float v) : bits(emulated_cuda::HalfBits(v)) {}
  __half(double v) : bits(emulated_cuda::HalfBits(v)) {}
  __half(int v) : bits(emulated_cuda::HalfBits(v)) {}
  operator float() const { return emulated_cuda::kHalfValues[bits]; }
  operator __half_raw() const { return {bits}; }
};
struct __align__(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;

inline __half __ushort_as_half(unsigned short v) { return __half(__half_raw{v}); }
inline unsigned short __half_as_ushort(__half v) { return v.bits; }
inline __half __short_as_half(short v) { return __ushort_as_half(static_cast<unsigned short>(v)); }
inline short __half_as_short(__half v) { return static_cast<short>(v.bits); }

inline __half __float2half(float v) { return __half(v); }
inline __half __float2half_rn(float v) { return __half(v); }
inline __half __float2half_rz(float v) {
  return __ushort_as_half(emulated_cuda::HalfBits(v, emulated_cuda::Fp16Rounding::kZero));
}
inline __half __float2half_ru(float v) {
  return __ushort_as_half(emulated_cuda::HalfBits(v, emulated_cuda::Fp16Rounding::kUp));
}
inline __half __float2half_rd(float v) {
  return __ushort_as_half(emulated_cuda::HalfBits(v, emulated_cuda::Fp16Rounding::kDown));
}
inline __half __double2half(double v) { return __half(v); }
inline float __half2float(__half v) { return static_cast<float>(v); }
inline __half __int2half_rn(int v) { return __half(v); }

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half v) { return {v, v}; }
inline __half2 __float2half2_rn(float v) { return {__half(v), __half(v)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return __half2float(v.x); }
inline float __high2float(__half2 v) { return __half2float(v.y); }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }

#define EMULATED_HALF_OPERATION(name, op)                                                       \
  inline __half name(__half a, __half b) { return __half(__half2float(a) op __half2float(b)); } \
  inline __half2 name##2(__half2 a, __half2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }     \
  inline __half operator op(__half a, __half b) { return name(a, b); }                          \
  inline __half2 operator op(__half2 a, __half2 b) { return name##2(a, b); }
EMULATED_HALF_OPERATION(__hadd, +)
EMULATED_HALF_OPERATION(__hsub, -)
EMULATED_HALF_OPERATION(__hmul, *)
EMULATED_HALF_OPERATION(__hdiv, /)
#undef EMULATED_HALF_OPERATION
inline __half2 __h2div(__half2 a, __half2 b) { return __hdiv2(a, b); }

#define EMULATED_HALF_COMPARISON(name, op)                                            \
  inline bool name(__half a, __half b) { return __half2float(a) op __half2float(b); } \
  inline bool operator op(__half a, __half b) { return name(a, b); }
EMULATED_HALF_COMPARISON(__heq, ==)
EMULATED_HALF_COMPARISON(__hne, !=)
EMULATED_HALF_COMPARISON(__hlt, <)
EMULATED_HALF_COMPARISON(__hle, <=)
EMULATED_HALF_COMPARISON(__hgt, >)
EMULATED_HALF_COMPARISON(__hge, >=)
#undef EMULATED_HALF_COMPARISON

inline __half __hfma(__half a, __half b, __half c) {
  return __ushort_as_half(
      emulated_cuda::FusedHalf(__half2float(a), __half2float(b), __half2float(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half __hneg(__half a) {
  return __ushort_as_half(static_cast<unsigned short>(a.bits ^ 0x8000U));
}
inline __half __habs(__half a) {
  return __ushort_as_half(static_cast<unsigned short>(a.bits & 0x7FFFU));
}
inline __half2 __hneg2(__half2 a) { return {__hneg(a.x), __hneg(a.y)}; }
inline __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
inline __half operator-(__half a) { return __hneg(a); }
inline bool __hisnan(__half a) { return (a.bits & 0x7FFFU) > 0x7C00U; }
inline int __hisinf(__half a) {
  return (a.bits & 0x7FFFU) != 0x7C00U ? 0 : a.bits == 0x7C00U ? 1 : -1;
}
inline __half __hmax(__half a, __half b) {
  return __half(std::fmax(__half2float(a), __half2float(b)));
}
inline __half __hmin(__half a, __half b) {
  return __half(std::fmin(__half2float(a), __half2float(b)));
}
inline __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }

// NOLINTEND
