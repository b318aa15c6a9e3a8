#include "kernels/row_scan.h"

#include "kernels/finish.cuh"
#include "kernels/row_stream.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreadsMax = 256;
constexpr unsigned kFragmentBytes = 512;  // what a warp loads at once: 16 bytes a lane
constexpr unsigned kStagedHits = 1024;    // that a block keeps in shared memory until the end
constexpr float kNoQuery = 1e30F;         // the gate of an empty slot

// Hits are rare and come from all over the rows: a block gathers them and appends them once.
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

__device__ __forceinline__ uint2 HalvesOf(const float* from, float scale) {
  const float4 values = *reinterpret_cast<const float4*>(from);
  const __half2 low = __floats2half2_rn(values.x * scale, values.y * scale);
  const __half2 high = __floats2half2_rn(values.z * scale, values.w * scale);
  return make_uint2(Bits<unsigned>(low), Bits<unsigned>(high));
}

// Queries as halves in the order in which lanes want them: [16 columns][16 queries][lane] 16 bytes,
// an A fragment. A lane takes 8 neighbouring columns where the product asks for pairs 8 apart: the
// columns of rows and queries are permuted alike, which no sum notices.
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
      if (query < pass.batch) upper = HalvesOf(from, pass.terms[query].unit_of_query);
      if (query + 8 < pass.batch) {
        lower = HalvesOf(from + static_cast<std::size_t>(8) * pass.stride,
                         pass.terms[query + 8].unit_of_query);
      }
    }
    reinterpret_cast<uint4*>(to)[i] = make_uint4(upper.x, lower.x, upper.y, lower.y);
  }
}

// A number, found by halving, that at least `rank` of the values reach: close to the
// rank-th best value and never above it. Whole warp.
__device__ __forceinline__ float RankFloor(const float* values, unsigned count, unsigned rank,
                                           unsigned lane) {
  if (count < rank) return kLowestScore;
  constexpr unsigned kValuesOfLane = kScanGroupsMax / 32;
  constexpr int kHalvings = 20;
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
  for (int i = 0; i < kHalvings; ++i) {
    const float middle = 0.5F * (low + high);
    if (!(middle > low && middle < high)) break;
    int reached = 0;
#pragma unroll
    for (unsigned j = 0; j < kValuesOfLane; ++j) reached += value[j] >= middle ? 1 : 0;
    reached = WarpSum(reached);
    if (static_cast<unsigned>(reached) < rank) {
      high = middle;
      continue;
    }
    low = middle;
    if (static_cast<unsigned>(reached) == rank) break;
  }
  return low;
}

// Every block sets all gates for itself; one of them tells the steps that follow.
__device__ __forceinline__ void SetGates(const Pass& pass, const RowScanArguments& arguments,
                                         unsigned slots,
                                         SharedArray<float, kScanQueriesMax>& gates) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (unsigned query = warp; query < slots; query += warps) {
    float gate = kNoQuery;
    if (query < pass.batch && pass.terms[query].wanted != 0) {
      gate = RankFloor(arguments.maxima + static_cast<std::size_t>(query) * arguments.sample_groups,
                       arguments.sample_groups, pass.terms[query].rank, lane);
      // The lowest maximum is that of a group without a row that passes: then all may.
      gate = gate <= -kHighestScore ? kLowestScore : gate - arguments.margin;
    }
    if (lane == 0) {
      gates[query] = gate;
      if (blockIdx.x == 0 && query < pass.batch) pass.gates[query] = gate;
    }
  }
}

// All blocks are there. What each wrote before is seen by all after. The last to come lets the
// others go by changing the round's number, which may wrap; the count is 0 between rounds.
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

// Scores of 32 rows for 16 queries a piece: [8 rows] (query g, row t) (g, t + 4) (g + 8, t)
// (g + 8, t + 4), with g = lane / 4 and t = lane % 4.
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

// The place of a score in a tile: n and i as in TileScores.
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

// A lane's own hits: scores whose sign is clear.
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
  if (none_at_all < 0) return;  // no barrier follows within the tile
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

}  // namespace

// Dynamic shared memory: [queries in fragment order][a ring a warp], and over both, when all rows
// are scored, the room of the last step.
template <unsigned kSixteens, unsigned kStages, class Rows>
__global__ void __launch_bounds__(kThreadsMax, 1)
    RowScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                  const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
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
  Rows rows(pass, arguments.halves, walk,
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
      // The rings keep filling with the first tiles of the full pass meanwhile.
      GridBarrier(arguments.rounds);
      SetGates(pass, arguments, kSlots, gates);
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
  FinishRoom& room = *reinterpret_cast<FinishRoom*>(DynamicShared());
  for (unsigned query = blockIdx.x; query < pass.batch; query += gridDim.x) {
    FinishQuery(pass, query, room);
  }
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

// Shared memory that is not dynamic, a little more of it.
constexpr std::size_t kFixedBytes =
    sizeof(StagedHits) + sizeof(SharedArray<float, kScanQueriesMax>) + 128;

}  // namespace

RowScanShape ShapeRowScan(unsigned stride, unsigned batch, std::size_t shared_bytes_max,
                          bool asynchronous) {
  const unsigned slots = batch <= 16 ? 16 : (batch <= 32 ? 32 : 64);
  const std::size_t queries = QueryBytes(slots, stride);
  if (asynchronous) {
    for (const unsigned warps : {8U, 6U, 4U}) {
      for (const unsigned stages : {6U, 4U, 3U}) {
        const std::size_t bytes = queries + std::size_t{warps} * stages * kSlotBytes;
        if (bytes + kFixedBytes > shared_bytes_max) continue;
        return {slots, stages, warps, bytes < sizeof(FinishRoom) ? sizeof(FinishRoom) : bytes};
      }
    }
  }
  const std::size_t bytes = queries < sizeof(FinishRoom) ? sizeof(FinishRoom) : queries;
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
