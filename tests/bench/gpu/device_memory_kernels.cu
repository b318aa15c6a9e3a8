#include "bench/gpu/device_memory_kernels.h"

#include "kernels/device.h"

namespace simile::bench::gpu {
namespace {

constexpr unsigned kThreads = 512;
constexpr unsigned kLoads = 8;  // in flight per thread: 64 KB per block

__device__ __forceinline__ unsigned Mixed(unsigned value) {
  value = (value ^ 61U) ^ (value >> 16);
  value *= 9U;
  value ^= value >> 4;
  value *= 0x27d4eb2dU;
  return value ^ (value >> 15);
}

}  // namespace

__global__ void __launch_bounds__(kThreads)
    ReadKernel(const uint4* from, std::size_t count, unsigned* sum) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kThreads;
  unsigned bits = 0;
  for (std::size_t at = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += step * kLoads) {
    uint4 loads[kLoads];
#pragma unroll
    for (unsigned i = 0; i < kLoads; ++i) {
      const std::size_t index = at + i * step;
      loads[i] = index < count ? kernels::LoadStream16(from + index) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (unsigned i = 0; i < kLoads; ++i) {
      bits |= loads[i].x ^ loads[i].y ^ loads[i].z ^ loads[i].w;
    }
  }
  // Keeps the compiler from removing the loads; practically never true.
  if (bits == 0xdeadbeefU) *sum = bits;
}

__global__ void __launch_bounds__(kThreads)
    RandomFp16Kernel(__half* to, std::size_t count, unsigned seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t at = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += step) {
    const unsigned bits =
        Mixed(static_cast<unsigned>(at) ^ Mixed(seed + static_cast<unsigned>(at >> 32)));
    to[at] = __float2half_rn(static_cast<float>(bits >> 8) * 0x1p-24F - 0.5F);
  }
}

cudaError_t LaunchRead(const void* from, std::size_t bytes, unsigned blocks, unsigned* sum,
                       cudaStream_t stream) {
  return kernels::Launch(ReadKernel, dim3(blocks), dim3(kThreads), 0, stream,
                         static_cast<const uint4*>(from), bytes / sizeof(uint4), sum);
}

cudaError_t LaunchRandomFp16(void* to, std::size_t count, unsigned seed, cudaStream_t stream) {
  constexpr unsigned kBlocks = 1'024;
  return kernels::Launch(RandomFp16Kernel, dim3(kBlocks), dim3(kThreads), 0, stream,
                         static_cast<__half*>(to), count, seed);
}

}  // namespace simile::bench::gpu
