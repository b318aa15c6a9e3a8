#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace simile::samples {

// Small correct kernels for the tests of the device. Pointers are device pointers.

// values[i] = values[i] * factor + addend.
cudaError_t LaunchScale(int* values, int count, int factor, int addend, cudaStream_t stream);

// One warp; each intrinsic's result in a row of 32 of `out`, [kIntrinsicRows, 32].
inline constexpr int kIntrinsicRows = 24;
cudaError_t LaunchIntrinsics(int* out, cudaStream_t stream);

// sums [16, 8] += a [16, 16] row-major fp16 * b [16, 8] column-major fp16, by one warp.
cudaError_t LaunchMma(const unsigned short* a, const unsigned short* b, float* sums,
                      cudaStream_t stream);

// sums [16, 8] += a [16, 32] row-major int8 * b [32, 8] column-major int8, by one warp.
cudaError_t LaunchIntegerMma(const signed char* a, const signed char* b, int* sums,
                             cudaStream_t stream);

// Reverses each block of 128 values through cp.async, in two stages; zeros past count.
cudaError_t LaunchReverse(const int* in, int count, int* out, int blocks, cudaStream_t stream);

// Rounds of a barrier over the grid: out[block] is the sum of what all blocks wrote in the last
// round. words holds blocks + 2 zeros. With `absent`, that block ends before its last round; with
// `faulty`, it breaks a rule there.
struct GridRounds {
  unsigned* words;
  unsigned* out;
  int rounds;
  int absent;
  int faulty;
};
cudaError_t LaunchGridRounds(const GridRounds& rounds, int blocks, int threads, bool together,
                             cudaStream_t stream);

// `rounds` barriers and as many shuffles a thread.
cudaError_t LaunchRounds(int* out, int blocks, int threads, int rounds, cudaStream_t stream);

// out[block] = the dynamic bytes of the launch, after using all of them.
cudaError_t LaunchDynamic(unsigned* out, std::size_t bytes, cudaStream_t stream);
cudaError_t AllowDynamic(std::size_t bytes);

// One thread per block; numbers the blocks in the order in which they run.
cudaError_t LaunchOrder(unsigned* counter, unsigned* order, int blocks, cudaStream_t stream);

}  // namespace simile::samples
