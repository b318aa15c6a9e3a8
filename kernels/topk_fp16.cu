#include "kernels/score_tile.h"

#include "kernels/device.h"

namespace simile::kernels {
namespace {

constexpr unsigned kWarps = 4;
constexpr unsigned kLoads = 4;   // of a lane
constexpr unsigned kScores = 8;  // of a load
constexpr unsigned kChunk = 32 * kLoads * kScores;
constexpr unsigned kSigns = 0x80008000U;  // of a pair of scores
constexpr unsigned kLowestPair = 0xfbfffbffU;

__device__ __forceinline__ unsigned MinusGate(float gate) {
  const __half negative = __float2half_rn(-gate);  // exact: gates are fp16 values
  return Bits<unsigned>(__half2half2(negative));
}

// Sets the sign bit of each score that is below the gate.
__device__ __forceinline__ unsigned Below(unsigned pair, unsigned minus_gate) {
  return Bits<unsigned>(__hadd2(Bits<__half2>(pair), Bits<__half2>(minus_gate)));
}

// Bit i: score i of the load reaches the gate.
__device__ __forceinline__ unsigned HitBits(uint4 scores, unsigned minus_gate) {
  const unsigned a = ~Below(scores.x, minus_gate) & kSigns;
  const unsigned b = ~Below(scores.y, minus_gate) & kSigns;
  const unsigned c = ~Below(scores.z, minus_gate) & kSigns;
  const unsigned d = ~Below(scores.w, minus_gate) & kSigns;
  const unsigned spread = a >> 15 | b >> 13 | c >> 11 | d >> 9;
  return (spread | spread >> 15) & 0xffU;
}

// Column, within the chunk, of a lane's hit bit.
__device__ __forceinline__ unsigned ToColumn(unsigned bit, unsigned lane) {
  return (bit / kScores * 32 + lane) * kScores + bit % kScores;
}

// Loads the lane's part of the chunk at `base`. Scores after the end of the tile are the lowest
// score.
__device__ __forceinline__ void LoadChunk(const __half* scores, unsigned base, unsigned columns,
                                          unsigned lane, uint4 (&loads)[kLoads]) {
  const uint4* from = reinterpret_cast<const uint4*>(scores + base) + lane;
  if (base + kChunk <= columns) {
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) loads[u] = LoadFromL2(from + u * 32);
    return;
  }
#pragma unroll
  for (unsigned u = 0; u < kLoads; ++u) {
    loads[u] = make_uint4(kLowestPair, kLowestPair, kLowestPair, kLowestPair);
    if (base + (u * 32 + lane) * kScores < columns) loads[u] = LoadFromL2(from + u * 32);
  }
}

// Bits of scores that are in the tile, because a load may reach past the last column.
__device__ __forceinline__ unsigned BitsInTile(unsigned base, unsigned columns, unsigned lane) {
  unsigned inside = 0;
#pragma unroll
  for (unsigned u = 0; u < kLoads; ++u) {
    const unsigned at = base + (u * 32 + lane) * kScores;
    const unsigned valid = at < columns ? min(columns - at, kScores) : 0;
    inside |= ((1U << valid) - 1) << (u * kScores);
  }
  return inside;
}

// Bits of positions that pass the mask. Reads the mask only for loads with a hit.
__device__ __forceinline__ unsigned BitsOfMask(const unsigned* mask, unsigned hits,
                                               unsigned position, unsigned lane) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(mask);
  unsigned passing = ~0U;
#pragma unroll
  for (unsigned u = 0; u < kLoads; ++u) {
    constexpr unsigned kAll = (1U << kScores) - 1;
    if ((hits >> (u * kScores) & kAll) == 0) continue;
    const unsigned byte = bytes[(position + (u * 32 + lane) * kScores) / 8];
    passing &= ~((~byte & kAll) << (u * kScores));
  }
  return passing;
}

// Appends the warp's hits: one atomicAdd for all of them.
__device__ __forceinline__ void AppendHits(const Pass& pass, unsigned query, const __half* scores,
                                           unsigned position, unsigned hits, unsigned lane) {
  // The first hit's score is fetched before the counter, so that the round trips overlap.
  unsigned column = 0;
  float score = 0;
  if (hits != 0) {
    column = ToColumn(static_cast<unsigned>(__ffs(static_cast<int>(hits))) - 1, lane);
    score = __half2float(scores[column]);
  }
  const unsigned mine = static_cast<unsigned>(__popc(hits));
  unsigned slot = mine;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned other = __shfl_up_sync(~0U, slot, step);
    if (lane >= step) slot += other;
  }
  const unsigned total = __shfl_sync(~0U, slot, 31);
  slot -= mine;
  unsigned start = 0;
  if (lane == 0) start = atomicAdd(pass.hit_counts + query, total);
  slot += __shfl_sync(~0U, start, 0);
  Hit* const out = pass.hits + static_cast<std::size_t>(query) * pass.capacity;
  while (hits != 0) {
    if (slot < pass.capacity) out[slot] = {position + column, score};
    ++slot;
    hits &= hits - 1;
    if (hits == 0) break;
    column = ToColumn(static_cast<unsigned>(__ffs(static_cast<int>(hits))) - 1, lane);
    score = __half2float(scores[column]);
  }
}

}  // namespace

__global__ void __launch_bounds__(kWarps * 32)
    TopkFp16Kernel(const SIMILE_GRID_CONSTANT Pass pass,
                   const SIMILE_GRID_CONSTANT ScoreTile tile) {
  const unsigned lane = threadIdx.x % 32, query = blockIdx.y * kWarps + threadIdx.x / 32;
  if (query >= pass.batch) return;  // whole warps return; no block barrier follows
  const __half* scores = tile.scores + static_cast<std::size_t>(query) * tile.pitch;
  const unsigned minus_gate = MinusGate(pass.gates[query]);
  for (unsigned base = blockIdx.x * kChunk; base < tile.columns; base += gridDim.x * kChunk) {
    uint4 loads[kLoads];
    LoadChunk(scores, base, tile.columns, lane, loads);
    unsigned below = kSigns;
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) {
      below &= Below(loads[u].x, minus_gate) & Below(loads[u].y, minus_gate) &
               Below(loads[u].z, minus_gate) & Below(loads[u].w, minus_gate);
    }
    if (__any_sync(~0U, below != kSigns ? 1 : 0) == 0) continue;

    unsigned hits = 0;  // bit u * kScores + i: score i of load u
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) hits |= HitBits(loads[u], minus_gate) << (u * kScores);
    if (base + kChunk > tile.columns) hits &= BitsInTile(base, tile.columns, lane);
    const unsigned* mask = pass.terms[query].mask;
    if (mask != nullptr && hits != 0) hits &= BitsOfMask(mask, hits, tile.first + base, lane);
    if (__any_sync(~0U, hits != 0 ? 1 : 0) == 0) continue;
    AppendHits(pass, query, scores + base, tile.first + base, hits, lane);
  }
}

cudaError_t LaunchTopkFp16(const Pass& pass, const ScoreTile& tile, cudaStream_t stream) {
  const dim3 grid((tile.columns + kChunk - 1) / kChunk, (pass.batch + kWarps - 1) / kWarps);
  return Launch(TopkFp16Kernel, grid, dim3(kWarps * 32), 0, stream, pass, tile);
}

}  // namespace simile::kernels
