#pragma once

// CUDA's keywords and vector types as plain C++.

#define EMULATED_CUDA 1

// NOLINTBEGIN: these names are CUDA's, not ours.

// Visible, so that dladdr can name a kernel in a report.
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// An OS thread runs one block at a time, so a copy for each OS thread is a copy for each block in
// flight. Inside a function thread_local implies static, and after extern it still parses.
#define __shared__ thread_local

#define EMULATED_VECTORS(type, scalar)                                              \
  struct type##1 {                                                                  \
    scalar x;                                                                       \
  };                                                                                \
  struct __align__(2 * sizeof(scalar)) type##2 {                                    \
    scalar x, y;                                                                    \
  };                                                                                \
  struct type##3 {                                                                  \
    scalar x, y, z;                                                                 \
  };                                                                                \
  struct __align__(sizeof(scalar) < 4 ? 4 * sizeof(scalar) : 16) type##4 {          \
    scalar x, y, z, w;                                                              \
  };                                                                                \
  inline type##2 make_##type##2(scalar x, scalar y) { return {x, y}; }              \
  inline type##3 make_##type##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
  inline type##4 make_##type##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
EMULATED_VECTORS(char, signed char)
EMULATED_VECTORS(uchar, unsigned char)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(ushort, unsigned short)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(uint, unsigned)
EMULATED_VECTORS(longlong, long long)
EMULATED_VECTORS(ulonglong, unsigned long long)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
#undef EMULATED_VECTORS

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_count = 1, unsigned y_count = 1, unsigned z_count = 1)
      : x(x_count), y(y_count), z(z_count) {}
};

// NOLINTEND
