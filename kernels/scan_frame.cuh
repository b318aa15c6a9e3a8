#pragma once

#include "kernels/device.h"
#include "kernels/pass.h"
#include "kernels/row_filter.cuh"
#include "kernels/row_stream.cuh"

// The scan that row_scan and int8_scan share: walks over the rows, sets the gates, and collects and
// appends hits. The differences are in a class `Scan`:
//   Gate, kSixteens, kEights, kSlots       its gates; its queries in the rows of the products
//   Scanned(arguments, pass)               the rows that it reads
//   StageQueries(pass, arguments, to)      their fragments to shared memory
//   SampleGate, GateAt, ThresholdOf        a slot's gate for the sample and for a threshold
//   HitMargin                              distance of a second gate below the hits that set it
//   Tile                                   the scores of 32 rows, relative to their gates

namespace simile::kernels {

inline constexpr unsigned kThreadsMax = 256;
inline constexpr unsigned kFragmentBytes = 512;  // one load of a warp: 16 bytes per lane
inline constexpr unsigned kStagedHits = 1024;    // per block, in shared memory until the end
// With at most this many slots every block computes all gates itself. Estimated: two gates for each
// of eight warps take about as long as a barrier over the grid.
inline constexpr unsigned kGatesOfBlock = 16;
inline constexpr float kNoQuery = 1e30F;  // the threshold of an empty slot

// Hits are rare and scattered, so a block collects them and appends them once.
struct StagedHits {
  SharedArray<Hit, kStagedHits> hits;
  SharedArray<unsigned, kStagedHits> queries;
  SharedArray<unsigned, 1> count;
};

template <class Scan>
using GatesOf = SharedArray<typename Scan::Gate, Scan::kSlots>;

// The bytes of query fragments in shared memory.
//   stride  of the rows, in fp16 numbers or pairs of bytes
__host__ __device__ constexpr std::size_t FragmentBytes(unsigned slots, unsigned stride) {
  return static_cast<std::size_t>((stride + kChunk - 1) / kChunk) * kChunk * slots * 2;
}

__device__ __forceinline__ uint4 LoadShared16(const unsigned char* from) {
  return *reinterpret_cast<const uint4*>(from);
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
    int parts[4] = {};  // four independent sums, which do not wait for each other
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

// Waits until all blocks have arrived; each block then sees what the others wrote before. The last
// block to arrive sets the count to 0 for the next round, then changes the round's number. The
// other blocks wait for this change. Only the change matters, so the number may wrap.
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

__device__ __forceinline__ void AddProduct(float (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2]) {
  Mma16x8x16(sums, a, b);
}
__device__ __forceinline__ void AddProduct(int (&sums)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2]) {
  Mma16x8x32(sums, a, b);
}

// Scores of 32 rows with kSixteens * 16 queries. With g = lane / 4 and t = lane % 4 a lane holds
// per 8 rows: (query g, row t) (g, t + 4) (g + 8, t) (g + 8, t + 4).
//   Sum  float: of fp16 numbers; int: of int8 codes, exact
template <class Sum, unsigned kSixteens>
struct TileScores {
  Sum sum[kSixteens][4][4];

  __device__ __forceinline__ void Start(const Sum (&upper)[kSixteens],
                                        const Sum (&lower)[kSixteens]) {
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
            AddProduct(sum[m][n], left, right);
          }
        }
      }
    }
  }
};

// The row of a score in a tile: n and i as in TileScores.
__device__ __forceinline__ unsigned RowInTile(unsigned n, unsigned i, unsigned lane) {
  return n * 8 + i % 2 * 4 + lane % 4;
}

__device__ __forceinline__ bool HasQuery(const Pass& pass, unsigned slot) {
  return slot < pass.batch && pass.terms[slot].wanted != 0;
}

// The threshold of a slot from the maxima of the sample's groups, the same in all lanes.
__device__ __forceinline__ float FirstThreshold(const Pass& pass, const RowScanArguments& arguments,
                                                unsigned slot, unsigned lane) {
  if (!HasQuery(pass, slot)) return kNoQuery;
  const QueryTerms& terms = pass.terms[slot];
  if (terms.reached > kLowestScore) return terms.reached - arguments.margin;
  const float floor =
      RankFloor(arguments.maxima + static_cast<std::size_t>(slot) * arguments.sample_groups,
                arguments.sample_groups, terms.rank, lane);
  // If a group in which no row passes decides, the floor is the lowest score, and every row is a
  // hit.
  return floor <= -kHighestScore ? kLowestScore : floor - arguments.margin;
}

// The threshold from the hits of the first rows, which are many more rows than the sample. Never
// below the gate that these hits reached.
template <class Scan>
__device__ __forceinline__ float SecondThreshold(const Pass& pass,
                                                 const RowScanArguments& arguments,
                                                 typename Scan::Gate gate, unsigned slot,
                                                 unsigned lane) {
  const float first = Scan::ThresholdOf(gate);
  if (!HasQuery(pass, slot) || pass.terms[slot].second_rank == 0) return first;
  const float floor =
      RankFloor(arguments.second_maxima + static_cast<std::size_t>(slot) * kScanGroupsMax,
                kScanGroupsMax, pass.terms[slot].second_rank, lane);
  return max(first, first + floor - Scan::HitMargin(arguments, gate, slot));
}

// The gates of all slots, in every block. Every block computes a few gates itself. With many slots
// each gate is computed once, and a barrier follows.
template <class Scan, class Threshold>
__device__ __forceinline__ void SetGates(const Pass& pass, const RowScanArguments& arguments,
                                         GatesOf<Scan>& gates, Threshold threshold_of) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if constexpr (Scan::kSlots <= kGatesOfBlock) {
    for (unsigned slot = warp; slot < Scan::kSlots; slot += warps) {
      const float threshold = threshold_of(slot, lane);
      if (lane != 0) continue;
      gates[slot] = Scan::GateAt(arguments, slot, threshold);
      if (blockIdx.x == 0 && slot < pass.batch) pass.gates[slot] = threshold;
    }
  } else {
    for (unsigned slot = warp * gridDim.x + blockIdx.x; slot < pass.batch;
         slot += warps * gridDim.x) {
      const float threshold = threshold_of(slot, lane);
      if (lane == 0) pass.gates[slot] = threshold;
    }
    GridBarrier(arguments.rounds);
    for (unsigned slot = threadIdx.x; slot < Scan::kSlots; slot += blockDim.x) {
      const float threshold = slot < pass.batch ? LoadFromL2(pass.gates + slot) : kNoQuery;
      gates[slot] = Scan::GateAt(arguments, slot, threshold);
    }
  }
  __syncthreads();
}

// The query of a score in a tile: m and h as in the loops below.
template <class Scan>
__device__ __forceinline__ unsigned QueryInTile(unsigned m, unsigned h, unsigned lane) {
  return (m * Scan::kEights + h) * 8 + lane / 4;
}

// The best scores of the queries among the scores that the lane holds.
template <class Scan>
struct BestScores {
  float best[Scan::kSixteens][Scan::kEights];

  __device__ __forceinline__ void Start() {
#pragma unroll
    for (unsigned m = 0; m < Scan::kSixteens; ++m) {
#pragma unroll
      for (unsigned h = 0; h < Scan::kEights; ++h) best[m][h] = kLowestScore;
    }
  }

  // Adds the scores of the tile's rows that pass.
  __device__ __forceinline__ void Add(const typename Scan::Tile& scores, const Pass& pass,
                                      unsigned tile, unsigned lane) {
#pragma unroll
    for (unsigned m = 0; m < Scan::kSixteens; ++m) {
#pragma unroll
      for (unsigned h = 0; h < Scan::kEights; ++h) {
        const unsigned query = QueryInTile<Scan>(m, h, lane);
        unsigned passing = ~0U;
        if (query < pass.batch && pass.terms[query].mask != nullptr) {
          passing = pass.terms[query].mask[tile];
        }
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
          const unsigned row = RowInTile(i / 2, i % 2, lane);
          if (tile * kScanTileRows + row < pass.row_count && (passing >> row & 1U) != 0) {
            best[m][h] = max(best[m][h], scores.Above(m, h, i / 2, i % 2));
          }
        }
      }
    }
  }

  // Writes each query's best of the warp. Whole warp.
  //   to  [queries][stride]
  __device__ __forceinline__ void Write(float* to, unsigned queries, unsigned stride,
                                        unsigned lane) {
#pragma unroll
    for (unsigned m = 0; m < Scan::kSixteens; ++m) {
#pragma unroll
      for (unsigned h = 0; h < Scan::kEights; ++h) {
        float of_warp = best[m][h];
        of_warp = max(of_warp, __shfl_xor_sync(~0U, of_warp, 1));
        of_warp = max(of_warp, __shfl_xor_sync(~0U, of_warp, 2));
        const unsigned query = QueryInTile<Scan>(m, h, lane);
        if (lane % 4 == 0 && query < queries) {
          to[static_cast<std::size_t>(query) * stride] = of_warp;
        }
      }
    }
  }
};

__device__ __forceinline__ void Append(const Pass& pass, unsigned query, Hit hit) {
  const unsigned slot = atomicAdd(pass.hit_counts + query, 1U);
  if (slot < pass.capacity) pass.hits[static_cast<std::size_t>(query) * pass.capacity + slot] = hit;
}

// Stages the lane's hits, whose scores have a clear sign bit. Hits of the first rows also count for
// the second gate.
template <class Scan>
__device__ __forceinline__ void KeepHits(const typename Scan::Tile& scores, const Pass& pass,
                                         const RowScanArguments& arguments, unsigned tile,
                                         unsigned lane, GatesOf<Scan>& gates, StagedHits& staged) {
  int none[Scan::kSixteens], none_at_all = -1;
#pragma unroll
  for (unsigned m = 0; m < Scan::kSixteens; ++m) {
    none[m] = -1;
#pragma unroll
    for (unsigned i = 0; i < 8 * Scan::kEights; ++i) {
      none[m] &= __float_as_int(scores.Above(m, i / 8, i / 2 % 4, i % 2));
    }
    none_at_all &= none[m];
  }
  if (none_at_all < 0) return;  // no barrier follows in the tile
#pragma unroll
  for (unsigned m = 0; m < Scan::kSixteens; ++m) {
    if (none[m] < 0) continue;
#pragma unroll
    for (unsigned i = 0; i < 8 * Scan::kEights; ++i) {
      const unsigned query = QueryInTile<Scan>(m, i / 8, lane);
      const unsigned position = tile * kScanTileRows + RowInTile(i / 2 % 4, i % 2, lane);
      const float above = scores.Above(m, i / 8, i / 2 % 4, i % 2);
      if (__float_as_int(above) < 0 || position >= pass.row_count) continue;
      if (!MaskPasses(pass.terms[query], position)) continue;
      if (tile < arguments.second_tiles) {  // the bits of positive numbers are in their order
        atomicMax(reinterpret_cast<int*>(arguments.second_maxima) + query * kScanGroupsMax +
                      tile % kScanGroupsMax,
                  __float_as_int(above));
      }
      const Hit hit{position, above + Scan::ThresholdOf(gates[query])};
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

// Dynamic shared memory: [queries in fragment order][one ring per warp].
template <class Scan, class Rows>
__device__ __forceinline__ unsigned char* RingOfWarp(const ScannedRows& scanned) {
  return DynamicShared() + FragmentBytes(Scan::kSixteens * 16, scanned.stride) +
         threadIdx.x / 32 * Rows::kBytes;
}

// Prepares everything that the first tile needs, except rows.
template <class Scan>
__device__ __forceinline__ void Prepare(const Pass& pass, const RowScanArguments& arguments,
                                        StagedHits& staged, GatesOf<Scan>& gates) {
  Scan::StageQueries(pass, arguments, DynamicShared());
  for (unsigned slot = threadIdx.x; slot < Scan::kSlots; slot += blockDim.x) {
    gates[slot] = Scan::SampleGate(pass, arguments, slot);
  }
  if (threadIdx.x == 0) staged.count[0] = 0;
  if (blockIdx.x == 0) {
    for (unsigned i = threadIdx.x; i < pass.batch; i += blockDim.x) pass.hit_counts[i] = 0;
  }
  if (arguments.second_tiles != 0) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pass.batch * kScanGroupsMax;
         i += gridDim.x * blockDim.x) {
      arguments.second_maxima[i] = 0;
    }
  }
  __syncthreads();
}

template <class Scan, class Rows>
__device__ __forceinline__ void AddProducts(typename Scan::Tile& scores, Rows& rows,
                                            unsigned stride, unsigned lane) {
  const unsigned char* query = DynamicShared() + lane * 16;
#pragma unroll 1
  for (unsigned column = 0; column < stride; column += kChunk) {
    rows.Next();
    scores.sums.AddChunk(rows, query);
    query += kChunk / 16 * Scan::kSixteens * kFragmentBytes;
  }
}

// Waits at the barrier until all maxima are written, then sets the first gates.
template <class Scan>
__device__ __forceinline__ void SetFirstGates(const Pass& pass, const RowScanArguments& arguments,
                                              GatesOf<Scan>& gates) {
  GridBarrier(arguments.rounds);
  SetGates<Scan>(pass, arguments, gates, [&](unsigned slot, unsigned lane) {
    return FirstThreshold(pass, arguments, slot, lane);
  });
}

// Called after the last row: appends the staged hits.
__device__ __forceinline__ void EndScan(const Pass& pass, StagedHits& staged) {
  __syncthreads();
  const unsigned kept = min(staged.count[0], kStagedHits);
  for (unsigned i = threadIdx.x; i < kept; i += blockDim.x) {
    Append(pass, staged.queries[i], staged.hits[i]);
  }
}

// The scan: the sample, then all rows.
//   Rows  of row_stream.cuh
template <class Scan, class Rows>
__device__ __forceinline__ void RunScan(const Pass& pass, const RowScanArguments& arguments,
                                        StagedHits& staged, GatesOf<Scan>& gates) {
  const ScannedRows scanned = Scan::Scanned(arguments, pass);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned tiles = (pass.row_count + kScanTileRows - 1) / kScanTileRows;
  const unsigned first = warp * gridDim.x + blockIdx.x;
  TileWalk walk{
      TileWalk::kSample,      first, first, blockDim.x / 32 * gridDim.x, arguments.sample_groups,
      arguments.second_tiles, tiles};
  walk.Settle();
  Rows rows(scanned, walk, RingOfWarp<Scan, Rows>(scanned), lane);
  Prepare<Scan>(pass, arguments, staged, gates);
  // During the barriers the rings fill with the next tiles.
#pragma unroll 1
  for (unsigned phase = TileWalk::kSample; phase <= TileWalk::kRows; ++phase) {
    if (phase == TileWalk::kFirst) SetFirstGates<Scan>(pass, arguments, gates);
    if (phase == TileWalk::kRows && arguments.second_tiles != 0) {
      GridBarrier(arguments.rounds);
      SetGates<Scan>(pass, arguments, gates, [&](unsigned slot, unsigned of_lane) {
        return SecondThreshold<Scan>(pass, arguments, gates[slot], slot, of_lane);
      });
    }
    while (walk.phase == phase) {
      const unsigned tile = walk.tile;
      typename Scan::Tile scores;
      scores.Start(pass, arguments, gates, tile, lane);
      AddProducts<Scan>(scores, rows, scanned.stride, lane);
      walk.Advance();
      scores.Finish(gates, lane);
      if (phase == TileWalk::kSample) {
        BestScores<Scan> best;
        best.Start();
        best.Add(scores, pass, tile, lane);
        best.Write(arguments.maxima + tile, pass.batch, arguments.sample_groups, lane);
      } else {
        KeepHits<Scan>(scores, pass, arguments, tile, lane, gates, staged);
        __syncwarp();
      }
    }
  }
  EndScan(pass, staged);
}

// The best scores of a block's warps, [slot][warp].
template <class Scan>
using BestOfWarps = SharedArray<float, std::size_t{Scan::kSlots} * kThreadsMax / 32>;

// The scan in the form kKept, for at most kTilesKept tiles a warp: the sample is all rows, whose
// scores stay in registers until the gates are known. Each half of a block is a group.
template <class Scan, class Rows>
__device__ __forceinline__ void RunKeptScan(const Pass& pass, const RowScanArguments& arguments,
                                            StagedHits& staged, GatesOf<Scan>& gates,
                                            BestOfWarps<Scan>& of_warps) {
  const ScannedRows scanned = Scan::Scanned(arguments, pass);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const unsigned tiles = (pass.row_count + kScanTileRows - 1) / kScanTileRows;
  const unsigned first = warp * gridDim.x + blockIdx.x, step = warps * gridDim.x;
  TileWalk walk{TileWalk::kSample, first, first, step, tiles, 0, 0};
  walk.Settle();
  Rows rows(scanned, walk, RingOfWarp<Scan, Rows>(scanned), lane);
  Prepare<Scan>(pass, arguments, staged, gates);
  typename Scan::Tile kept[kTilesKept];
  BestScores<Scan> best;
  best.Start();
#pragma unroll
  for (unsigned i = 0; i < kTilesKept; ++i) {
    const unsigned tile = first + i * step;
    if (tile >= tiles) break;  // the same in all lanes
    kept[i].Start(pass, arguments, gates, tile, lane);
    AddProducts<Scan>(kept[i], rows, scanned.stride, lane);
    typename Scan::Tile sampled = kept[i];
    sampled.Finish(gates, lane);
    best.Add(sampled, pass, tile, lane);
  }
  best.Write(of_warps.data() + warp, Scan::kSlots, warps, lane);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 2 * pass.batch; i += blockDim.x) {
    const unsigned slot = i / 2, half = i % 2;
    float of_half = kLowestScore;
    for (unsigned j = 0; j < warps / 2; ++j) {
      of_half = max(of_half, of_warps[slot * warps + half * (warps / 2) + j]);
    }
    arguments
        .maxima[static_cast<std::size_t>(slot) * arguments.sample_groups + blockIdx.x * 2 + half] =
        of_half;
  }
  SetFirstGates<Scan>(pass, arguments, gates);
#pragma unroll
  for (unsigned i = 0; i < kTilesKept; ++i) {
    const unsigned tile = first + i * step;
    if (tile >= tiles) break;
    kept[i].FinishKept(gates, lane);
    KeepHits<Scan>(kept[i], pass, arguments, tile, lane, gates, staged);
    __syncwarp();
  }
  EndScan(pass, staged);
}

// The layout of a scan with rings: as many warps as fit, then the most stages that fit and that the
// form has kernels for.
//   fragment_bytes  of the queries
//   shared_bytes    that a block may have, without memory that is not dynamic
inline RowScanShape RingShape(ScanForm form, unsigned slots, std::size_t fragment_bytes,
                              std::size_t shared_bytes) {
  for (const unsigned warps : {8U, 6U, 4U}) {
    for (const unsigned stages : {6U, 4U, 3U}) {
      if (form == ScanForm::kKept && stages != 4) continue;
      const std::size_t bytes = fragment_bytes + std::size_t{warps} * stages * kSlotBytes;
      if (bytes > shared_bytes) continue;
      return {slots, stages, warps, bytes, form};
    }
  }
  return {};
}

// Launches a scan in a shape; `kernel` is the kernel for the shape.
template <class Kernel>
cudaError_t LaunchScan(Kernel kernel, const RowScanShape& shape, unsigned blocks, const Pass& pass,
                       const RowScanArguments& arguments, cudaStream_t stream) {
  return LaunchTogether(kernel, dim3(blocks), dim3(shape.warps * 32), shape.shared_bytes, stream,
                        pass, arguments);
}

}  // namespace simile::kernels
