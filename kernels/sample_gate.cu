#include "kernels/sample_gate.h"

#include "kernels/histogram.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kScores = 8;  // of a load
constexpr unsigned kNoRow = 0;   // the key where no row passes, below every other
constexpr float kNoQuery = 65504.0F;

// fp16 scores as integers in the same order; -65504 maps to 0x0400, so that 0 is free.
__device__ __forceinline__ unsigned KeyOf(uint4 load, unsigned index) {
  const unsigned word = index < 4 ? (index < 2 ? load.x : load.y) : (index < 6 ? load.z : load.w);
  const unsigned half = word >> index % 2 * 16 & 0xffffU;
  return (half & 0x8000U) != 0 ? ~half & 0xffffU : half | 0x8000U;
}
__device__ __forceinline__ float ValueOf(unsigned key) {
  const unsigned half = (key & 0x8000U) != 0 ? key & 0x7fffU : ~key & 0xffffU;
  return __half2float(Bits<__half>(static_cast<unsigned short>(half)));
}

// The value rounded down to fp16.
__device__ __forceinline__ float RoundedDown(float value) {
  const __half nearest = __float2half_rn(value);
  if (__half2float(nearest) <= value) return __half2float(nearest);
  const auto bits = Bits<unsigned short>(nearest);
  // One step towards minus infinity, also across zero.
  const unsigned below = (bits & 0x8000U) != 0 ? bits + 1U : (bits != 0 ? bits - 1U : 0x8001U);
  return __half2float(Bits<__half>(static_cast<unsigned short>(below)));
}

}  // namespace

__global__ void __launch_bounds__(kThreads)
    SampleGateKernel(const SIMILE_GRID_CONSTANT Pass pass,
                     const SIMILE_GRID_CONSTANT ScoreTile tile,
                     const SIMILE_GRID_CONSTANT ScoreSample sample) {
  __shared__ SharedArray<unsigned short, kSampleKeysMax> keys;
  __shared__ SharedArray<unsigned, kBins> counts;
  __shared__ SharedArray<BinPlace, 1> place;
  const unsigned query = blockIdx.x;
  const QueryTerms& terms = pass.terms[query];
  const __half* scores = tile.scores + static_cast<std::size_t>(query) * tile.pitch;
  const auto* mask = reinterpret_cast<const unsigned char*>(terms.mask);
  const bool grouped = sample.group > 1;
  const unsigned loads = (sample.rows + kScores - 1) / kScores;
  const unsigned key_count = grouped ? loads : sample.rows;

  for (unsigned i = threadIdx.x; i < kBins; i += kThreads) counts[i] = 0;
  for (unsigned i = threadIdx.x; i < loads; i += kThreads) {
    const unsigned at = i * kScores, valid = min(kScores, sample.rows - at);
    unsigned passing = (1U << valid) - 1;
    if (mask != nullptr) passing &= mask[(tile.first + at) / 8];
    const uint4 load = LoadFromL2(reinterpret_cast<const uint4*>(scores + at));
    unsigned best = kNoRow;
#pragma unroll
    for (unsigned j = 0; j < kScores; ++j) {
      const unsigned key = (passing >> j & 1U) != 0 ? KeyOf(load, j) : kNoRow;
      best = max(best, key);
      if (!grouped && j < valid) keys[at + j] = static_cast<unsigned short>(key);
    }
    if (grouped) keys[i] = static_cast<unsigned short>(best);
  }
  __syncthreads();

  float gate = kLowestScore;
  if (terms.wanted == 0) {
    gate = kNoQuery;
  } else if (terms.rank <= key_count) {  // the same in all threads
    for (unsigned i = threadIdx.x; i < key_count; i += kThreads)
      atomicAdd(&counts[keys[i] >> 8], 1U);
    const BinPlace high = FindBin(counts.data(), place.data(), terms.rank);
    for (unsigned i = threadIdx.x; i < kBins; i += kThreads) counts[i] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < key_count; i += kThreads) {
      if (keys[i] >> 8 == high.bin) atomicAdd(&counts[keys[i] & 255U], 1U);
    }
    const BinPlace low = FindBin(counts.data(), place.data(), high.rank);
    const unsigned key = high.bin << 8 | low.bin;
    if (key != kNoRow) gate = max(kLowestScore, RoundedDown(ValueOf(key) - sample.margin));
  }
  if (threadIdx.x == 0) pass.gates[query] = gate;
}

cudaError_t LaunchSampleGate(const Pass& pass, const ScoreTile& tile, const ScoreSample& sample,
                             cudaStream_t stream) {
  return Launch(SampleGateKernel, dim3(pass.batch), dim3(kThreads), 0, stream, pass, tile, sample);
}

}  // namespace simile::kernels
