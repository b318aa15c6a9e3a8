#pragma once

// Device functions beyond plain CUDA, for real devices and for the emulated one of the tests. The
// only file with code that depends on the kind of device or on the card.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <utility>

// A kernel parameter that is not copied to local memory. Cards before sm_70 copy a parameter whose
// address is taken. clang knows the attribute from version 20 on.
#if defined(EMULATED_CUDA) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700) || \
    (defined(__clang__) && __clang_major__ < 20)
#define SIMILE_GRID_CONSTANT
#else
#define SIMILE_GRID_CONSTANT __grid_constant__
#endif

namespace simile::kernels {

// Whether AsyncCopy16 copies in the background. For other cards, kernels that need it are compiled
// to a trap: the host never launches them there, and they take most of the time to compile.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool kHasAsyncCopy = false;
#else
inline constexpr bool kHasAsyncCopy = true;
#endif

template <class To, class From>
__host__ __device__ __forceinline__ To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Mma16x8x16 for cards before sm_75, whose tensor cores lack these fragments: plain fp32, with
// operands fetched from other lanes.
__device__ __forceinline__ void MmaInFp32(float (&sums)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2]) {
  const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, pair = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll 1  // unrolled, operands of many steps would wait in registers, and 32 queries would
                  // spill
    for (int t = 0; t < 4; ++t) {
      const float2 low =
          __half22float2(Bits<__half2>(__shfl_sync(~0U, a[half * 2], group * 4 + t)));
      const float2 high =
          __half22float2(Bits<__half2>(__shfl_sync(~0U, a[half * 2 + 1], group * 4 + t)));
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        const float2 right =
            __half22float2(Bits<__half2>(__shfl_sync(~0U, b[half], (pair * 2 + column) * 4 + t)));
        sums[column] = __fmaf_rn(low.y, right.y, __fmaf_rn(low.x, right.x, sums[column]));
        sums[column + 2] = __fmaf_rn(high.y, right.y, __fmaf_rn(high.x, right.x, sums[column + 2]));
      }
    }
  }
}

#ifdef EMULATED_CUDA

using emulated_cuda::Launch;
using emulated_cuda::LaunchTogether;
using emulated_cuda::SharedArray;

__device__ __forceinline__ void Trap() {
  emulated_cuda::DeviceFault(cudaErrorLaunchFailure, "a kernel without code for this card");
}

__device__ __forceinline__ void AsyncCopy16(void* to, const void* from, bool valid) {
  emulated_cuda::AsyncCopy16(to, from, valid);
}
__device__ __forceinline__ void AsyncCopyCommit() { emulated_cuda::AsyncCopyCommit(); }
template <int kLeft>
__device__ __forceinline__ void AsyncCopyWait() {
  emulated_cuda::AsyncCopyWait(kLeft);
}
__device__ __forceinline__ void Mma16x8x16(float (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2], int line = __builtin_LINE()) {
  if (emulated_cuda::CodeCapability() < 75) return MmaInFp32(sums, a, b);
  emulated_cuda::MmaM16N8K16(sums, a, b, sums, line);
}
__device__ __forceinline__ void Mma16x8x32(int (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2], int line = __builtin_LINE()) {
  emulated_cuda::MmaM16N8K32(sums, a, b, line);
}
__device__ __forceinline__ unsigned LoadAcquire(const unsigned* from) {
  return emulated_cuda::LoadAcquire(from);
}
template <class T>
__device__ __forceinline__ T LoadFromL2(const T* from) {
  return *from;
}
__device__ __forceinline__ uint4 LoadStream16(const void* from) {
  return *static_cast<const uint4*>(from);
}
__device__ __forceinline__ int WarpSum(int value, int line = __builtin_LINE()) {
  return __reduce_add_sync(~0U, value, line);
}

#else  // a real device

#ifdef __clang__
// Without a number of blocks, ptxas spills registers of clang's code to fit more blocks. One block
// is enough.
#define SIMILE_BOUNDS(threads, blocks, ...) __attribute__((launch_bounds(threads, blocks)))
#undef __launch_bounds__
#define __launch_bounds__(...) SIMILE_BOUNDS(__VA_ARGS__, 1)
#endif

// Enqueues a kernel and does not wait. Errors: the launch's.
template <class... Parameters, class... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, Arguments&&... arguments) {
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, nullptr, 0};
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// As above, with all blocks resident at once, as a barrier over the grid requires. Errors: also
// when the blocks do not fit.
template <class... Parameters, class... Arguments>
cudaError_t LaunchTogether(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                           std::size_t shared_bytes, cudaStream_t stream,
                           Arguments&&... arguments) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, &together, 1};
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Ends the kernel with an error from which the device does not recover.
__device__ __forceinline__ void Trap() { __trap(); }

// Shared memory of a block. An aggregate, because __shared__ allows no constructor. The emulated
// device checks indexes and poisons what was never written.
template <class T, std::size_t kCount>
struct SharedArray {
  alignas(16) T items[kCount];
  __device__ T* data() { return items; }
  __device__ T& operator[](std::size_t index) { return items[index]; }
};

// Copies 16 bytes into shared memory in the background; zeros if !valid. Visible to the thread
// after AsyncCopyWait, to other threads after a barrier that follows. Cards before sm_80 copy at
// once.
__device__ __forceinline__ void AsyncCopy16(void* to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  *static_cast<uint4*>(to) = valid ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void AsyncCopyCommit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most kLeft of the thread's groups are unfinished.
template <int kLeft>
__device__ __forceinline__ void AsyncCopyWait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// sums += a (16 x 16 fp16) * b (16 x 8 fp16), in fp32, by a whole warp. With g = lane / 4 and
// t = lane % 4 a lane holds, as pairs along the inner dimension: a = (g, 2t) (g+8, 2t) (g, 2t+8)
// (g+8, 2t+8); b = (2t, g) (2t+8, g); sums = (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1).
__device__ __forceinline__ void Mma16x8x16(float (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif __CUDA_ARCH__ >= 750  // half the depth per instruction: (a0, a1, b0), then (a2, a3, b1)
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[half * 2]), "r"(a[half * 2 + 1]), "r"(b[half]));
  }
#else
  MmaInFp32(sums, a, b);
#endif
}

// sums += a (16 x 32 int8) * b (32 x 8 int8), exactly, by a whole warp. The fragments are byte for
// byte those of Mma16x8x16, with four numbers along the inner dimension instead of two. For sm_80
// and later.
__device__ __forceinline__ void Mma16x8x32(int (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // kernel_variants.cpp never launches it on such a card
  Trap();
#endif
}

// For a barrier over the grid: writes before the matching release are visible after it.
__device__ __forceinline__ unsigned LoadAcquire(const unsigned* from) {
#if __CUDA_ARCH__ >= 700
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  const unsigned value = *static_cast<const volatile unsigned*>(from);
  __threadfence();
  return value;
#endif
}
// Loads past L1: for data that other blocks wrote, or that is read once.
template <class T>
__device__ __forceinline__ T LoadFromL2(const T* from) {
#ifdef __clang__  // lacks __ldcg
  if constexpr (sizeof(T) == 16) {
    uint4 value;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from)
                 : "memory");
    return Bits<T>(value);
  } else if constexpr (sizeof(T) == 8) {
    unsigned long long value;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return Bits<T>(value);
  } else {
    unsigned value;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return Bits<T>(value);
  }
#else
  return __ldcg(from);
#endif
}
// Read-only data that is read once; not kept in L1.
__device__ __forceinline__ uint4 LoadStream16(const void* from) {
  uint4 value;
#if __CUDA_ARCH__ >= 800
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
#else
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
#endif
  return value;
}
__device__ __forceinline__ int WarpSum(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0U, value);
#else
  for (int step = 16; step != 0; step /= 2) value += __shfl_xor_sync(~0U, value, step);
  return value;
#endif
}

#endif

}  // namespace simile::kernels

// One name and type in the whole program, in the global namespace: the emulated device defines it.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

namespace simile::kernels {

// The block's dynamic shared memory, of the size given to the launch.
__device__ __forceinline__ unsigned char* DynamicShared() { return dynamic_shared; }

}  // namespace simile::kernels
