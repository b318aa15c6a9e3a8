#include "kernels/score_tile.h"

#include <algorithm>

#include "kernels/histogram.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreadsMax = 1'024;
constexpr unsigned kBlocksAtOnce = 1;  // per multiprocessor, so that registers hold the loads
constexpr unsigned kScores = 8;        // of a load
// The loads of a thread that are issued together. Estimated: a thousand threads then read a sample
// in two latencies.
constexpr unsigned kLoadsAhead = 4;
constexpr unsigned kNoRow = 0;  // the key if no row passes; below every other key
constexpr float kNoQuery = 65504.0F;

// Two fp16 scores as integers in the same order; -65504 maps to 0x0400, so that 0 is free.
__device__ __forceinline__ unsigned ToKeys(unsigned scores) {
  const unsigned negative = (scores >> 15 & 0x00010001U) * 0xffffU;
  return scores ^ (negative | 0x80008000U);
}
__device__ __forceinline__ float ToValue(unsigned key) {
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

__global__ void __launch_bounds__(kThreadsMax, kBlocksAtOnce)
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

  for (unsigned i = threadIdx.x; i < kBins; i += blockDim.x) counts[i] = 0;
  for (unsigned base = threadIdx.x; base < loads; base += kLoadsAhead * blockDim.x) {
    uint4 load[kLoadsAhead];
    unsigned passing[kLoadsAhead];
#pragma unroll
    for (unsigned u = 0; u < kLoadsAhead; ++u) {
      // After the last load, repeats it.
      const unsigned at = min(base + u * blockDim.x, loads - 1) * kScores;
      load[u] = LoadFromL2(reinterpret_cast<const uint4*>(scores + at));
      passing[u] = mask != nullptr ? mask[(tile.first + at) / 8] : 255U;
    }
#pragma unroll
    for (unsigned u = 0; u < kLoadsAhead; ++u) {
      const unsigned i = base + u * blockDim.x;
      const unsigned valid = min(kScores, sample.rows - i * kScores);
      const unsigned bits = passing[u] & ((1U << valid) - 1);
      unsigned words[] = {load[u].x, load[u].y, load[u].z, load[u].w}, best = kNoRow;
#pragma unroll
      for (unsigned j = 0; j < kScores / 2; ++j) {
        const unsigned low = bits >> (2 * j) & 1U, high = bits >> (2 * j + 1) & 1U;
        words[j] = ToKeys(words[j]) & (low * 0xffffU | high * 0xffff0000U);
        best = max(best, max(words[j] & 0xffffU, words[j] >> 16));
      }
      if (i < loads && grouped) keys[i] = static_cast<unsigned short>(best);
      if (i < loads && !grouped) {
        reinterpret_cast<uint4*>(keys.data())[i] =
            make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
  __syncthreads();

  float gate = kLowestScore;
  if (terms.wanted == 0) {
    gate = kNoQuery;
  } else if (terms.rank <= key_count) {  // the same in all threads
    for (unsigned i = threadIdx.x; i < key_count; i += blockDim.x)
      atomicAdd(&counts[keys[i] >> 8], 1U);
    const BinPlace high = FindBin(counts.data(), place.data(), terms.rank);
    for (unsigned i = threadIdx.x; i < kBins; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < key_count; i += blockDim.x) {
      if (keys[i] >> 8 == high.bin) atomicAdd(&counts[keys[i] & 255U], 1U);
    }
    const BinPlace low = FindBin(counts.data(), place.data(), high.rank);
    const unsigned key = high.bin << 8 | low.bin;
    if (key != kNoRow) gate = max(kLowestScore, RoundedDown(ToValue(key) - sample.margin));
  }
  if (threadIdx.x == 0) pass.gates[query] = gate;
}

cudaError_t LaunchSampleGate(const Pass& pass, const ScoreTile& tile, const ScoreSample& sample,
                             cudaStream_t stream) {
  // A thread per eight keys, so that few threads wait at the barriers of the selection. Estimated.
  const unsigned keys = sample.group > 1 ? (sample.rows + kScores - 1) / kScores : sample.rows;
  const unsigned threads = std::clamp((keys / 8 + 31) / 32 * 32, 128U, kThreadsMax);
  return Launch(SampleGateKernel, dim3(pass.batch), dim3(threads), 0, stream, pass, tile, sample);
}

}  // namespace simile::kernels
