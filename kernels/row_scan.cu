#include "kernels/row_scan.h"

#include <algorithm>

#include "kernels/finish.cuh"
#include "kernels/finish.h"
#include "kernels/row_stream.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreadsMax = 256;
constexpr unsigned kFragmentBytes = 512;  // one load of a warp: 16 bytes per lane
constexpr unsigned kStagedHits = 1024;    // per block, in shared memory until the end
constexpr unsigned kGatesOfBlock = 16;    // slots whose gates every block computes for itself
constexpr float kNoQuery = 1e30F;         // the gate of an empty slot

// Hits are rare and scattered: a block collects them and appends them once.
struct StagedHits {
  SharedArray<Hit, kStagedHits> hits;
  SharedArray<unsigned, kStagedHits> queries;
  SharedArray<unsigned, 1> count;
};

__host__ __device__ constexpr std::size_t QueryBytes(unsigned queries, unsigned stride) {
  return static_cast<std::size_t>((stride + kChunk - 1) / kChunk) * kChunk * queries *
         sizeof(__half);
}

__device__ __forceinline__ uint4 LoadShared16(const unsigned char* from) {
  return *reinterpret_cast<const uint4*>(from);
}

__device__ __forceinline__ uint2 PackFp16x4(const float* from, float scale) {
  const float4 values = *reinterpret_cast<const float4*>(from);
  const __half2 low = __floats2half2_rn(values.x * scale, values.y * scale);
  const __half2 high = __floats2half2_rn(values.z * scale, values.w * scale);
  return make_uint2(Bits<unsigned>(low), Bits<unsigned>(high));
}

// Queries as fp16 in the order in which lanes load them: [16 columns][16 queries][lane] 16 bytes,
// an A fragment. A lane takes 8 neighbouring columns where the MMA defines pairs 8 apart: the
// columns of rows and queries are permuted alike, which leaves every product the same.
template <unsigned kSixteens>
__device__ __forceinline__ void StageQueries(const Pass& pass, unsigned char* to) {
  const unsigned chunks = (pass.stride + kChunk - 1) / kChunk;
  for (unsigned i = threadIdx.x; i < chunks * (kChunk / 16) * kSixteens * 32; i += blockDim.x) {
    const unsigned fragment = i / 32, group = i % 32 / 4, quad = i % 4;
    const unsigned sixteen = fragment / kSixteens;
    const unsigned query = fragment % kSixteens * 16 + group;
    const unsigned column = sixteen / 2 * 32 + quad * 8 + sixteen % 2 * 4;
    uint2 upper = make_uint2(0, 0), lower = make_uint2(0, 0);
    if (column < pass.stride) {
      const float* from = pass.queries + static_cast<std::size_t>(query) * pass.stride + column;
      if (query < pass.batch) upper = PackFp16x4(from, pass.terms[query].unit_of_query);
      if (query + 8 < pass.batch) {
        lower = PackFp16x4(from + static_cast<std::size_t>(8) * pass.stride,
                           pass.terms[query + 8].unit_of_query);
      }
    }
    reinterpret_cast<uint4*>(to)[i] = make_uint4(upper.x, lower.x, upper.y, lower.y);
  }
}

// Waits for all blocks; each then sees what the others wrote before. The last to arrive changes the
// round's number, which may wrap, and so releases the others; the count is 0 between rounds.
__device__ __forceinline__ void GridBarrier(GridRounds* rounds) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned round = LoadAcquire(&rounds->number);
    __threadfence();
    if (atomicAdd(&rounds->arrived, 1U) == gridDim.x - 1) {
      rounds->arrived = 0;
      __threadfence();
      atomicAdd(&rounds->number, 1U);
    } else {
      while (LoadAcquire(&rounds->number) == round) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// A number that at least `rank` of the values reach, found by bisection: close to the rank-th best
// value and never above it. Whole warp.
__device__ __forceinline__ float RankFloor(const float* values, unsigned count, unsigned rank,
                                           unsigned lane) {
  if (count < rank) return kLowestScore;
  constexpr unsigned kValuesOfLane = kScanGroupsMax / 32;
  constexpr int kBisections = 20;
  float value[kValuesOfLane];
  float low = -kLowestScore, high = kLowestScore;
#pragma unroll
  for (unsigned i = 0; i < kValuesOfLane; ++i) {
    const unsigned at = i * 32 + lane;
    value[i] = at < count ? LoadFromL2(values + at) : 2 * kLowestScore;
    if (at < count) {
      low = min(low, value[i]);
      high = max(high, value[i]);
    }
  }
#pragma unroll
  for (int step = 16; step != 0; step /= 2) {
    low = min(low, __shfl_xor_sync(~0U, low, step));
    high = max(high, __shfl_xor_sync(~0U, high, step));
  }
  for (int i = 0; i < kBisections; ++i) {
    const float middle = 0.5F * (low + high);
    if (!(middle > low && middle < high)) break;
    int parts[4] = {};  // four sums that need not wait for each other
#pragma unroll
    for (unsigned j = 0; j < kValuesOfLane; ++j) parts[j % 4] += value[j] >= middle ? 1 : 0;
    const int reached = WarpSum(parts[0] + parts[1] + (parts[2] + parts[3]));
    if (static_cast<unsigned>(reached) < rank) {
      high = middle;
      continue;
    }
    low = middle;
    if (static_cast<unsigned>(reached) == rank) break;
  }
  return low;
}

// The gate of a slot, the same in all lanes.
__device__ __forceinline__ float GateOf(const Pass& pass, const RowScanArguments& arguments,
                                        unsigned query, unsigned lane) {
  if (query >= pass.batch || pass.terms[query].wanted == 0) return kNoQuery;
  const float gate =
      RankFloor(arguments.maxima + static_cast<std::size_t>(query) * arguments.sample_groups,
                arguments.sample_groups, pass.terms[query].rank, lane);
  // A group in which no row passes has the lowest maximum: then every row reaches the gate.
  return gate <= -kHighestScore ? kLowestScore : gate - arguments.margin;
}

// The gates of all slots, in every block. Few are computed by every block for itself. Of many, each
// is computed once: a barrier takes less time than a warp needs for two more of them.
template <unsigned kSlots>
__device__ __forceinline__ void SetGates(const Pass& pass, const RowScanArguments& arguments,
                                         SharedArray<float, kScanQueriesMax>& gates) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if constexpr (kSlots <= kGatesOfBlock) {
    for (unsigned query = warp; query < kSlots; query += warps) {
      const float gate = GateOf(pass, arguments, query, lane);
      if (lane != 0) continue;
      gates[query] = gate;
      if (blockIdx.x == 0 && query < pass.batch) pass.gates[query] = gate;
    }
  } else {
    for (unsigned query = warp * gridDim.x + blockIdx.x; query < pass.batch;
         query += warps * gridDim.x) {
      const float gate = GateOf(pass, arguments, query, lane);
      if (lane == 0) pass.gates[query] = gate;
    }
    GridBarrier(arguments.rounds);
    for (unsigned query = threadIdx.x; query < kSlots; query += blockDim.x) {
      gates[query] = query < pass.batch ? LoadFromL2(pass.gates + query) : kNoQuery;
    }
  }
}

// Scores of 32 rows with kSixteens * 16 queries. With g = lane / 4 and t = lane % 4 a lane holds
// per 8 rows: (query g, row t) (g, t + 4) (g + 8, t) (g + 8, t + 4).
template <unsigned kSixteens>
struct TileScores {
  float sum[kSixteens][4][4];

  __device__ __forceinline__ void Start(const float (&upper)[kSixteens],
                                        const float (&lower)[kSixteens]) {
#pragma unroll
    for (unsigned m = 0; m < kSixteens; ++m) {
#pragma unroll
      for (unsigned n = 0; n < 4; ++n) {
        sum[m][n][0] = sum[m][n][1] = upper[m];
        sum[m][n][2] = sum[m][n][3] = lower[m];
      }
    }
  }

  //   query  the lane's first fragment of the chunk
  template <class Rows>
  __device__ __forceinline__ void AddChunk(const Rows& rows, const unsigned char* query) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      uint4 row[4];
#pragma unroll
      for (unsigned n = 0; n < 4; ++n) row[n] = rows.Load(half, n);
#pragma unroll
      for (unsigned s = 0; s < 2; ++s) {
#pragma unroll
        for (unsigned m = 0; m < kSixteens; ++m) {
          const uint4 fragment =
              LoadShared16(query + ((half * 2 + s) * kSixteens + m) * kFragmentBytes);
          const unsigned left[4] = {fragment.x, fragment.y, fragment.z, fragment.w};
#pragma unroll
          for (unsigned n = 0; n < 4; ++n) {
            const unsigned right[2] = {s != 0 ? row[n].z : row[n].x, s != 0 ? row[n].w : row[n].y};
            Mma16x8x16(sum[m][n], left, right);
          }
        }
      }
    }
  }
};

// The row and query of a score in a tile: n and i as in TileScores.
__device__ __forceinline__ unsigned RowInTile(unsigned n, unsigned i, unsigned lane) {
  return n * 8 + i % 2 * 4 + lane % 4;
}
__device__ __forceinline__ unsigned QueryInTile(unsigned m, unsigned i, unsigned lane) {
  return m * 16 + i / 2 * 8 + lane / 4;
}

// Writes each query's best score among the tile's rows that pass.
template <unsigned kSixteens>
__device__ __forceinline__ void KeepMaxima(const TileScores<kSixteens>& scores, const Pass& pass,
                                           const RowScanArguments& arguments, unsigned tile,
                                           unsigned lane) {
#pragma unroll
  for (unsigned m = 0; m < kSixteens; ++m) {
#pragma unroll
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned query = QueryInTile(m, h * 2, lane);
      unsigned passing = ~0U;
      if (query < pass.batch && pass.terms[query].mask != nullptr) {
        passing = pass.terms[query].mask[tile];
      }
      float best = kLowestScore;
#pragma unroll
      for (unsigned n = 0; n < 4; ++n) {
#pragma unroll
        for (unsigned c = 0; c < 2; ++c) {
          const unsigned row = RowInTile(n, c, lane);
          if (tile * kScanTileRows + row < pass.row_count && (passing >> row & 1U) != 0) {
            best = max(best, scores.sum[m][n][h * 2 + c]);
          }
        }
      }
      best = max(best, __shfl_xor_sync(~0U, best, 1));
      best = max(best, __shfl_xor_sync(~0U, best, 2));
      if (lane % 4 == 0 && query < pass.batch) {
        arguments.maxima[static_cast<std::size_t>(query) * arguments.sample_groups + tile] = best;
      }
    }
  }
}

__device__ __forceinline__ void Append(const Pass& pass, unsigned query, Hit hit) {
  const unsigned slot = atomicAdd(pass.hit_counts + query, 1U);
  if (slot < pass.capacity) pass.hits[static_cast<std::size_t>(query) * pass.capacity + slot] = hit;
}

// Stages the lane's hits: scores with a clear sign bit.
template <unsigned kSixteens>
__device__ __forceinline__ void KeepHits(const TileScores<kSixteens>& scores, const Pass& pass,
                                         unsigned tile, unsigned lane,
                                         SharedArray<float, kScanQueriesMax>& gates,
                                         StagedHits& staged) {
  int none[kSixteens], none_at_all = -1;
#pragma unroll
  for (unsigned m = 0; m < kSixteens; ++m) {
    none[m] = -1;
#pragma unroll
    for (unsigned n = 0; n < 4; ++n) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) none[m] &= __float_as_int(scores.sum[m][n][i]);
    }
    none_at_all &= none[m];
  }
  if (none_at_all < 0) return;  // no barrier follows in the tile
#pragma unroll
  for (unsigned m = 0; m < kSixteens; ++m) {
    if (none[m] < 0) continue;
#pragma unroll
    for (unsigned n = 0; n < 4; ++n) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned query = QueryInTile(m, i, lane);
        const unsigned position = tile * kScanTileRows + RowInTile(n, i, lane);
        if (__float_as_int(scores.sum[m][n][i]) < 0 || position >= pass.row_count) continue;
        if (!MaskPasses(pass.terms[query], position)) continue;
        const Hit hit{position, scores.sum[m][n][i] + gates[query]};
        const unsigned at = atomicAdd(&staged.count[0], 1U);
        if (at < kStagedHits) {
          staged.hits[at] = hit;
          staged.queries[at] = query;
        } else {
          Append(pass, query, hit);
        }
      }
    }
  }
}

// From hits to answers. The block of a query does it all where answers are short; else it prunes
// and concludes, and all blocks share the canonical scores between two barriers.
__device__ __forceinline__ void FinishQueries(const Pass& pass, const RowScanArguments& arguments,
                                              FinishShared& shared) {
  if (pass.best_stride <= kHitsOfOneBlock) {
    for (unsigned query = blockIdx.x; query < pass.batch; query += gridDim.x) {
      FinishQuery(pass, query, shared);
    }
    return;
  }
  for (unsigned query = blockIdx.x; query < pass.batch; query += gridDim.x) {
    const unsigned kept = Prune(pass, query, shared);
    if (threadIdx.x == 0) pass.proofs[query].kept = kept;
  }
  GridBarrier(arguments.rounds);
  // Neighbouring pairs of rows go to different multiprocessors.
  RescoreAll(pass, threadIdx.x / 32 * gridDim.x + blockIdx.x, blockDim.x / 32 * gridDim.x);
  GridBarrier(arguments.rounds);
  for (unsigned query = blockIdx.x; query < pass.batch; query += gridDim.x) {
    Conclude(pass, query, LoadFromL2(&pass.proofs[query].kept), shared);
  }
}

}  // namespace

// Dynamic shared memory: [queries in fragment order][one ring per warp]; after all rows are scored,
// FinishShared in the same bytes.
template <unsigned kSixteens, unsigned kStages, class Rows>
__global__ void __launch_bounds__(kThreadsMax, 1)
    RowScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                  const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
  if constexpr (kStages > 1 && !kHasAsyncCopy) return;
  __shared__ StagedHits staged;
  __shared__ SharedArray<float, kScanQueriesMax> gates;
  constexpr unsigned kSlots = kSixteens * 16;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
  const unsigned tiles = (pass.row_count + kScanTileRows - 1) / kScanTileRows;
  const unsigned chunks = (pass.stride + kChunk - 1) / kChunk;
  const unsigned first = warp * gridDim.x + blockIdx.x;
  TileWalk walk{TileWalk::kSample,       first, first, blockDim.x / 32 * gridDim.x,
                arguments.sample_groups, tiles};
  walk.Settle();
  unsigned char* const queries = DynamicShared();
  Rows rows(pass, arguments.fp16_rows, walk,
            queries + QueryBytes(kSlots, pass.stride) + warp * kStages * kSlotBytes, lane);
  StageQueries<kSixteens>(pass, queries);
  if (threadIdx.x == 0) staged.count[0] = 0;
  if (blockIdx.x == 0) {
    for (unsigned i = threadIdx.x; i < pass.batch; i += blockDim.x) pass.hit_counts[i] = 0;
  }
  __syncthreads();

#pragma unroll 1
  for (unsigned phase = TileWalk::kSample; phase <= TileWalk::kRows; ++phase) {
    if (phase == TileWalk::kRows) {
      // Meanwhile the rings fill with the first tiles of the full pass.
      GridBarrier(arguments.rounds);
      SetGates<kSlots>(pass, arguments, gates);
      __syncthreads();
    }
    float upper[kSixteens], lower[kSixteens];
#pragma unroll
    for (unsigned m = 0; m < kSixteens; ++m) {
      upper[m] = phase == TileWalk::kRows ? -gates[m * 16 + group] : 0.0F;
      lower[m] = phase == TileWalk::kRows ? -gates[m * 16 + 8 + group] : 0.0F;
    }
    while (walk.phase == phase) {
      TileScores<kSixteens> scores;
      scores.Start(upper, lower);
      const unsigned char* query = queries + lane * 16;
#pragma unroll 1
      for (unsigned chunk = 0; chunk < chunks; ++chunk) {
        rows.Next();
        scores.AddChunk(rows, query);
        query += kChunk / 16 * kSixteens * kFragmentBytes;
      }
      const unsigned tile = walk.tile;
      walk.Advance();
      if (phase == TileWalk::kSample) {
        KeepMaxima(scores, pass, arguments, tile, lane);
      } else {
        KeepHits(scores, pass, tile, lane, gates, staged);
        __syncwarp();
      }
    }
  }
  __syncthreads();
  const unsigned kept = min(staged.count[0], kStagedHits);
  for (unsigned i = threadIdx.x; i < kept; i += blockDim.x) {
    Append(pass, staged.queries[i], staged.hits[i]);
  }
  if (!arguments.finishes) return;
  GridBarrier(arguments.rounds);
  FinishQueries(pass, arguments, *reinterpret_cast<FinishShared*>(DynamicShared()));
}

namespace {

using Kernel = void (*)(Pass, RowScanArguments);

template <unsigned kSixteens>
Kernel KernelFor(unsigned stages) {
  switch (stages) {
    case 1:
      return RowScanKernel<kSixteens, 1, RowRegisters>;
    case 3:
      return RowScanKernel<kSixteens, 3, RowRing<3>>;
    case 4:
      return RowScanKernel<kSixteens, 4, RowRing<4>>;
    default:
      return RowScanKernel<kSixteens, 6, RowRing<6>>;
  }
}

Kernel KernelFor(const RowScanShape& shape) {
  if (shape.queries == 16) return KernelFor<1>(shape.stages);
  return shape.queries == 32 ? KernelFor<2>(shape.stages) : KernelFor<4>(shape.stages);
}

// An upper bound of the shared memory that is not dynamic.
constexpr std::size_t kFixedBytes =
    sizeof(StagedHits) + sizeof(SharedArray<float, kScanQueriesMax>) + 128;

unsigned SlotsFor(unsigned batch) { return batch <= 16 ? 16 : (batch <= 32 ? 32 : 64); }

}  // namespace

RowScanShape ShapeRingScan(unsigned stride, unsigned batch, std::size_t shared_bytes_max) {
  const unsigned slots = SlotsFor(batch);
  for (const unsigned warps : {8U, 6U, 4U}) {
    for (const unsigned stages : {6U, 4U, 3U}) {
      const std::size_t bytes =
          QueryBytes(slots, stride) + std::size_t{warps} * stages * kSlotBytes;
      if (bytes + kFixedBytes > shared_bytes_max) continue;
      return {slots, stages, warps, std::max(bytes, sizeof(FinishShared))};
    }
  }
  return {};
}

RowScanShape ShapeRegisterScan(unsigned stride, unsigned batch, std::size_t shared_bytes_max) {
  const unsigned slots = SlotsFor(batch);
  const std::size_t bytes = std::max(QueryBytes(slots, stride), sizeof(FinishShared));
  if (bytes + kFixedBytes > shared_bytes_max) return {};
  return {slots, 1, 8, bytes};
}

cudaError_t PrepareRowScan(const RowScanShape& shape, std::size_t shared_bytes_max) {
  return cudaFuncSetAttribute(KernelFor(shape), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes_max - kFixedBytes));
}

cudaError_t LaunchRowScan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                          const RowScanArguments& arguments, cudaStream_t stream) {
  return LaunchTogether(KernelFor(shape), dim3(blocks), dim3(shape.warps * 32), shape.shared_bytes,
                        stream, pass, arguments);
}

}  // namespace simile::kernels
