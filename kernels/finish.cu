#include "kernels/answers.h"

#include <algorithm>

#include "kernels/canonical.cuh"
#include "kernels/histogram.cuh"
#include "kernels/pass.h"
#include "kernels/row_filter.cuh"
#include "kernels/select.cuh"

// From a query's hits to its answer: prune to the rows that can be among the best, compute their
// canonical scores, order them, certify. Each step runs in one block of whole warps, canonical
// scores in one or many; the kernels at the end combine them.
//
// A hit's score is within pass.bound of its canonical score. Scores of the int8 scan are upper
// bounds of the canonical scores instead (pass.hits_are_upper_bounds, with a bound of 0). The
// canonical scores of the hits with the best upper bounds then decide which other hits need a
// canonical score.

namespace simile::kernels {
namespace {

constexpr unsigned kFineBins = kBins * 8;
constexpr float kAnyScore = 1e30F;  // above every cheap score

// Shared memory of the steps, in the kernel's dynamic shared memory.
struct FinishShared {
  unsigned fine[kFineBins];
  unsigned coarse[kBins];
  BinPlace place;
  unsigned eligible;
  unsigned listed;
  Key run[kRunKeys];
};

__device__ __forceinline__ unsigned HitsHeld(const Pass& pass, unsigned query) {
  return min(LoadFromL2(pass.hit_counts + query), pass.capacity);
}

// The hits of one thread whose loads are issued together. Estimated: a block of 256 threads then
// reads a query's usual thousand hits in one memory latency.
constexpr unsigned kHitsAhead = 4;

// Loads the hits at, at + blockDim.x, ... of a list. Hits beyond its end get kLowestScore.
__device__ __forceinline__ void LoadHits(const Hit* hits, unsigned at, unsigned count,
                                         Hit (&loaded)[kHitsAhead]) {
#pragma unroll
  for (unsigned j = 0; j < kHitsAhead; ++j) {
    const unsigned i = at + j * blockDim.x;
    loaded[j] = i < count ? Bits<Hit>(LoadFromL2(reinterpret_cast<const uint2*>(hits + i)))
                          : Hit{0, kLowestScore};
  }
}

// ListHits drops up to this many excluded rows, because it reads the rows of hits anyway.
// PruningCut therefore keeps that many more hits. Some of these extra hits may be rescored without
// need. Estimated: at k 10, four more rows still fit the first turn of the block's warps.
constexpr unsigned kExcludedOfList = 4;

__device__ __forceinline__ unsigned ExcludedOfList(const QueryTerms& terms) {
  return terms.excluded_count <= kExcludedOfList ? terms.excluded_count : 0;
}

// Gives kLowestScore to the hits whose rows are excluded, if the query excludes more rows than
// ListHits drops. Reads the row of every hit. Each thread changes only the hits that it loads
// itself in later steps.
__device__ __forceinline__ void DropExcluded(const Pass& pass, unsigned query, unsigned count) {
  const QueryTerms& terms = pass.terms[query];
  if (terms.excluded_count <= kExcludedOfList) return;  // the same in all threads
  Hit* const hits = pass.hits + static_cast<std::size_t>(query) * pass.capacity;
  for (unsigned base = 0; base < count; base += kHitsAhead * blockDim.x) {
    Hit loaded[kHitsAhead];
    unsigned rows[kHitsAhead];
    LoadHits(hits, base + threadIdx.x, count, loaded);
#pragma unroll
    for (unsigned j = 0; j < kHitsAhead; ++j) rows[j] = __ldg(pass.row_of + loaded[j].position);
#pragma unroll
    for (unsigned j = 0; j < kHitsAhead; ++j) {
      const unsigned i = base + threadIdx.x + j * blockDim.x;
      if (i < count && IsExcluded(terms, rows[j])) hits[i].score = kLowestScore;
    }
  }
}

// A score below which no hit can be among the best. The rank is `wanted` plus the number of
// excluded rows that ListHits drops, because every excluded row may have a better rank. The cut is
// the score at this rank, minus twice the bound, rounded down to one of kFineBins steps. One pass
// over the hits.
__device__ __forceinline__ float PruningCut(const Pass& pass, unsigned query, unsigned count,
                                            FinishShared& shared) {
  constexpr float kNoCut = -kHighestScore;  // drops only the rows that DropExcluded marked
  const Hit* hits = pass.hits + static_cast<std::size_t>(query) * pass.capacity;
  const QueryTerms& terms = pass.terms[query];
  const unsigned wanted = terms.wanted + ExcludedOfList(terms);
  const float low = max(LoadFromL2(pass.gates + query), -kHighestScore);
  const float bins_per_unit = static_cast<float>(kFineBins) / (kHighestScore - low);
  for (unsigned i = threadIdx.x; i < kFineBins; i += blockDim.x) shared.fine[i] = 0;
  if (threadIdx.x == 0) shared.eligible = 0;
  __syncthreads();
  int eligible = 0;  // of this thread's hits
  for (unsigned base = 0; base < count; base += kHitsAhead * blockDim.x) {
    Hit loaded[kHitsAhead];
    LoadHits(hits, base + threadIdx.x, count, loaded);
#pragma unroll
    for (unsigned j = 0; j < kHitsAhead; ++j) {
      if (loaded[j].score == kLowestScore) continue;
      const float place = min(max((loaded[j].score - low) * bins_per_unit, 0.0F),
                              static_cast<float>(kFineBins - 1));
      atomicAdd(&shared.fine[static_cast<unsigned>(place)], 1U);
      ++eligible;
    }
  }
  eligible = WarpSum(eligible);
  if (threadIdx.x % 32 == 0) atomicAdd(&shared.eligible, static_cast<unsigned>(eligible));
  __syncthreads();
  if (shared.eligible <= wanted) return kNoCut;  // the same in all threads
  constexpr unsigned kWidth = kFineBins / kBins;
  for (unsigned i = threadIdx.x; i < kBins; i += blockDim.x) {
    unsigned sum = 0;
    for (unsigned j = 0; j < kWidth; ++j) sum += shared.fine[i * kWidth + j];
    shared.coarse[i] = sum;
  }
  const BinPlace coarse = FindBin(shared.coarse, &shared.place, wanted);
  unsigned bin = coarse.bin * kWidth + kWidth - 1, left = coarse.rank;
  while (left > shared.fine[bin]) left -= shared.fine[bin--];
  if (bin == 0) return kNoCut;  // the bin has no lower edge
  // The bin's lower edge, minus an upper bound of the rounding of `place`.
  constexpr float kPlaceError = 4e-6F;
  return low + static_cast<float>(bin) / bins_per_unit - 2.0F * pass.bound - kPlaceError;
}

// Appends the rows of the hits with from <= score < below to the list, in any order, without the
// few excluded rows. Returns the length of the list.
__device__ __forceinline__ unsigned ListHits(const Pass& pass, unsigned query, unsigned listed,
                                             float from, float below, FinishShared& shared) {
  constexpr unsigned kNoRow = ~0U;
  const unsigned count = HitsHeld(pass, query), lane = threadIdx.x % 32;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  const bool drops = ExcludedOfList(pass.terms[query]) != 0;  // the same in all threads
  if (threadIdx.x == 0) shared.listed = listed;
  __syncthreads();
  for (unsigned base = 0; base < count; base += kHitsAhead * blockDim.x) {
    Hit loaded[kHitsAhead];
    unsigned rows[kHitsAhead];
    LoadHits(pass.hits + first, base + threadIdx.x, count, loaded);
#pragma unroll
    for (unsigned j = 0; j < kHitsAhead; ++j) {
      const bool keep = loaded[j].score >= from && loaded[j].score < below;
      rows[j] = keep ? __ldg(pass.row_of + loaded[j].position) : kNoRow;
    }
    if (drops) {
#pragma unroll
      for (unsigned j = 0; j < kHitsAhead; ++j) {
        if (rows[j] != kNoRow && IsExcluded(pass.terms[query], rows[j])) rows[j] = kNoRow;
      }
    }
#pragma unroll
    for (unsigned j = 0; j < kHitsAhead; ++j) {
      const bool keep = rows[j] != kNoRow;
      const unsigned lanes = __ballot_sync(~0U, keep);
      unsigned slot = 0;
      if (lane == 0 && lanes != 0) {
        slot = atomicAdd(&shared.listed, static_cast<unsigned>(__popc(lanes)));
      }
      slot = __shfl_sync(~0U, slot, 0) + static_cast<unsigned>(__popc(lanes & ((1U << lane) - 1)));
      if (keep) pass.kept_rows[first + slot] = rows[j];
    }
  }
  __syncthreads();
  return shared.listed;
}

// Lists the rows of the hits that can be among the best. If scores are upper bounds, lists the
// `wanted` best.
__device__ __forceinline__ Candidates Prune(const Pass& pass, unsigned query,
                                            FinishShared& shared) {
  const unsigned count = HitsHeld(pass, query);
  DropExcluded(pass, query, count);
  const float cut = PruningCut(pass, query, count, shared);
  return {0, ListHits(pass, query, 0, cut, kAnyScore, shared), cut};
}

// Puts the first kRunKeys of the listed rows in the order of ranges of rows, at most kBins of equal
// length. Within a range rows have any order.
// REQUIRES: a barrier since the rows were listed. Ends without a barrier.
__device__ __forceinline__ void OrderByRow(const Pass& pass, unsigned query, unsigned listed,
                                           FinishShared& shared) {
  constexpr unsigned kRowsOfThread = kKeysOfLane;
  static_assert(kBins == kSelectThreads, "SumBefore needs a thread for each range");
  unsigned* const list = pass.kept_rows + static_cast<std::size_t>(query) * pass.capacity;
  unsigned shift = 0;  // shifts a row to its range
  while ((pass.row_count - 1) >> shift >= kBins) ++shift;
  shared.coarse[threadIdx.x] = 0;
  __syncthreads();
  unsigned rows[kRowsOfThread], places[kRowsOfThread];  // places within the range
#pragma unroll
  for (unsigned j = 0; j < kRowsOfThread; ++j) {
    const unsigned i = threadIdx.x + j * kSelectThreads;
    if (i >= listed) continue;
    rows[j] = LoadFromL2(list + i);
    places[j] = atomicAdd(&shared.coarse[rows[j] >> shift], 1U);
  }
  __syncthreads();
  SumBefore(shared.coarse, shared.fine);
#pragma unroll
  for (unsigned j = 0; j < kRowsOfThread; ++j) {
    const unsigned i = threadIdx.x + j * kSelectThreads;
    if (i >= listed) continue;
    list[shared.coarse[rows[j] >> shift] + places[j]] = rows[j];
  }
}

// The least canonical score of the listed rows, in units.
__device__ __forceinline__ float LeastScore(const Pass& pass, unsigned query, unsigned listed,
                                            FinishShared& shared) {
  const Key* keys = pass.keys + static_cast<std::size_t>(query) * pass.capacity;
  Key least = ~0ULL;
  for (unsigned i = threadIdx.x; i < listed; i += blockDim.x) least = min(least, keys[i]);
#pragma unroll
  for (int step = 16; step != 0; step /= 2) least = min(least, __shfl_xor_sync(~0U, least, step));
  if (threadIdx.x % 32 == 0) shared.run[threadIdx.x / 32] = least;
  __syncthreads();
  for (unsigned i = 0; i < blockDim.x / 32; ++i) least = min(least, shared.run[i]);
  return ToScore(least) / pass.terms[query].score_of_unit;
}

// If scores are upper bounds, adds the hits whose upper bounds reach the least canonical score of
// the rows listed so far. The `wanted` best rows reach that score, so no other hit can be among the
// best.
__device__ __forceinline__ Candidates ListOthers(const Pass& pass, unsigned query,
                                                 Candidates candidates, FinishShared& shared) {
  const unsigned scored = candidates.listed;
  if (scored == 0 || scored < pass.terms[query].wanted) return {scored, scored, candidates.cut};
  const float least = LeastScore(pass, query, scored, shared);
  const unsigned listed = ListHits(pass, query, scored, least, candidates.cut, shared);
  return {scored, listed, candidates.cut};
}

// Forms the canonical keys of listed rows without a key, two rows per warp at a time.
//   warp, warps  this warp's index and the number of warps that share the work; the warp takes
//                every pair of rows at warp + i * warps
__device__ __forceinline__ void Rescore(const Pass& pass, unsigned query, unsigned scored,
                                        unsigned listed, unsigned warp, unsigned warps) {
  const unsigned lane = threadIdx.x % 32, pairs = (listed - scored + 1) / 2;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  const float* vector = pass.queries + static_cast<std::size_t>(query) * pass.stride;
  for (; warp < pairs; warp += warps) {
    const unsigned i = scored + warp * 2;
    const unsigned a = LoadFromL2(pass.kept_rows + first + i);
    const unsigned b = LoadFromL2(pass.kept_rows + first + min(i + 1, listed - 1));
    const ScorePair scores =
        CanonicalScores(vector, pass.rows + static_cast<std::size_t>(a) * pass.stride,
                        pass.rows + static_cast<std::size_t>(b) * pass.stride, pass.stride, lane);
    if (lane == 0) pass.keys[first + i] = MakeKey(scores.first, a);
    if (lane == 1 && i + 1 < listed) pass.keys[first + i + 1] = MakeKey(scores.second, b);
  }
}

// Whether the answer is proven: a row that did not reach the gate has a canonical score below
// gate + bound.
__device__ __forceinline__ ProofFlag Certify(const Pass& pass, unsigned query, unsigned hits,
                                             unsigned kept, Key last) {
  const QueryTerms& terms = pass.terms[query];
  const float gate = LoadFromL2(pass.gates + query);
  if (terms.wanted == 0) return kProven;
  if (hits > pass.capacity) return kOverflow;
  if (gate <= kLowestScore) return kProven;  // every row that passes is a hit
  if (kept < terms.wanted) return kTooFew;
  const double limit = (static_cast<double>(gate) + static_cast<double>(pass.bound)) *
                       static_cast<double>(terms.score_of_unit);
  return static_cast<double>(ToScore(last)) >= limit ? kProven : kBelowGate;
}

// Orders the keys and writes the answer with its proof. Overwrites the query's hits.
//   kKeys  as SelectBest's
template <unsigned kKeys>
__device__ __forceinline__ void Conclude(const Pass& pass, unsigned query, unsigned kept,
                                         FinishShared& shared) {
  const unsigned wanted = pass.terms[query].wanted;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  Key* scratch = reinterpret_cast<Key*>(pass.hits + first);
  const Key* best = SelectBest<kKeys>(pass.keys + first, scratch, kept, wanted, shared.run);
  const unsigned count = min(kept, wanted);
  // WriteAnswer ends with a barrier: the answer is complete before its flag.
  const unsigned found = WriteAnswer(pass, query, best, count, shared.eligible);
  if (threadIdx.x == 0) {
    const unsigned hits = LoadFromL2(pass.hit_counts + query);
    const Key last = count == 0 ? 0 : best[count - 1];
    Proof& proof = pass.proofs[query];
    proof.hits = hits;
    proof.kept = kept;
    proof.found = found;
    if (pass.host_polls) __threadfence_system();
    *static_cast<volatile unsigned*>(&proof.flag) = Certify(pass, query, hits, kept, last);
  }
}

// All steps in one block.
__device__ __forceinline__ void FinishQuery(const Pass& pass, unsigned query,
                                            FinishShared& shared) {
  const unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Candidates candidates = Prune(pass, query, shared);
  Rescore(pass, query, 0, candidates.listed, warp, warps);
  __syncthreads();
  if (pass.hits_are_upper_bounds) {
    candidates = ListOthers(pass, query, candidates, shared);
    Rescore(pass, query, candidates.scored, candidates.listed, warp, warps);
    __syncthreads();
  }
  Conclude<1>(pass, query, candidates.listed, shared);
}

constexpr unsigned kThreads = kSelectThreads;
constexpr unsigned kWarps = kThreads / 32;
// Leaves 80 registers a thread, for eight keys and their places.
constexpr unsigned kSortingBlocksAtOnce = 3;

__device__ __forceinline__ FinishShared& Shared() {
  return *reinterpret_cast<FinishShared*>(DynamicShared());
}

}  // namespace

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    FinishKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  FinishQuery(pass, blockIdx.x, Shared());
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    PruneKernel(const SIMILE_GRID_CONSTANT Pass pass, bool in_row_order) {
  const Candidates candidates = Prune(pass, blockIdx.x, Shared());
  if (in_row_order) OrderByRow(pass, blockIdx.x, candidates.listed, Shared());
  if (threadIdx.x == 0) pass.candidates[blockIdx.x] = candidates;
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    ListOthersKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  const Candidates candidates = ListOthers(pass, blockIdx.x, pass.candidates[blockIdx.x], Shared());
  __syncthreads();  // all have loaded the former ones
  if (threadIdx.x == 0) pass.candidates[blockIdx.x] = candidates;
}

// A block has a part of one query's list. Blocks start in the order of blockIdx.x. If blockIdx.x is
// the query, blocks that run at the same time have the same part of each list.
__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    RescoreKernel(const SIMILE_GRID_CONSTANT Pass pass, bool in_row_order) {
  const unsigned query = in_row_order ? blockIdx.x : blockIdx.y;
  const unsigned part = in_row_order ? blockIdx.y : blockIdx.x;
  const unsigned parts = in_row_order ? gridDim.y : gridDim.x;
  const Candidates candidates = pass.candidates[query];
  Rescore(pass, query, candidates.scored, candidates.listed, part * kWarps + threadIdx.x / 32,
          parts * kWarps);
}

__global__ void __launch_bounds__(kThreads, kSortingBlocksAtOnce)
    ConcludeKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  Conclude<kKeysOfLane>(pass, blockIdx.x, pass.candidates[blockIdx.x].listed, Shared());
}

cudaError_t LaunchFinish(const Pass& pass, cudaStream_t stream) {
  return Launch(FinishKernel, dim3(pass.batch), dim3(kThreads), sizeof(FinishShared), stream, pass);
}

cudaError_t LaunchFinishInSteps(const Pass& pass, unsigned expected, bool in_row_order,
                                cudaStream_t stream) {
  const dim3 queries(pass.batch), block(kThreads);
  // Each warp takes two rows.
  const unsigned parts = std::clamp((expected + 2 * kWarps - 1) / (2 * kWarps), 1U, 256U);
  const dim3 shares(parts, pass.batch);
  const dim3 first_shares = in_row_order ? dim3(pass.batch, parts) : shares;
  constexpr std::size_t kShared = sizeof(FinishShared);
  cudaError_t error = Launch(PruneKernel, queries, block, kShared, stream, pass, in_row_order);
  if (error == cudaSuccess) {
    error = Launch(RescoreKernel, first_shares, block, 0, stream, pass, in_row_order);
  }
  if (pass.hits_are_upper_bounds) {
    if (error == cudaSuccess)
      error = Launch(ListOthersKernel, queries, block, kShared, stream, pass);
    if (error == cudaSuccess) error = Launch(RescoreKernel, shares, block, 0, stream, pass, false);
  }
  if (error != cudaSuccess) return error;
  return Launch(ConcludeKernel, queries, block, kShared, stream, pass);
}

}  // namespace simile::kernels
