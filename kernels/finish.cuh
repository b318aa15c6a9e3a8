#pragma once

#include "kernels/canonical.cuh"
#include "kernels/histogram.cuh"
#include "kernels/pass.h"
#include "kernels/rank_keys.h"
#include "kernels/row_filter.cuh"
#include "kernels/select.cuh"

// From a query's hits to its answer: prune to the rows that can be among the best, compute their
// canonical scores, order them, certify. Each step runs in one block of whole warps; finish.cu and
// row_scan.cu combine them.

namespace simile::kernels {

inline constexpr unsigned kFineBins = kBins * 8;

// Shared memory of the steps, in the kernel's dynamic shared memory.
struct FinishShared {
  unsigned fine[kFineBins];
  unsigned coarse[kBins];
  BinPlace place;
  unsigned eligible;
  unsigned kept;
  Key run[kRunKeys];
};

__device__ __forceinline__ unsigned HitsHeld(const Pass& pass, unsigned query) {
  return min(LoadFromL2(pass.hit_counts + query), pass.capacity);
}

// Replaces each hit's position by its row, and the score of an excluded one by kLowestScore.
// Returns how many of this thread's hits are left.
__device__ __forceinline__ unsigned NameRows(const Pass& pass, unsigned query, unsigned count) {
  const QueryTerms& terms = pass.terms[query];
  Hit* hits = pass.hits + static_cast<std::size_t>(query) * pass.capacity;
  unsigned eligible = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    Hit hit = Bits<Hit>(LoadFromL2(reinterpret_cast<const uint2*>(hits + i)));
    hit.position = __ldg(pass.row_of + hit.position);
    if (IsExcluded(terms, hit.position)) {
      hit.score = kLowestScore;
    } else {
      ++eligible;
    }
    hits[i] = hit;
  }
  return eligible;
}

// A score below which no hit can be among the best: the wanted-th best score less twice the bound,
// rounded down to one of kFineBins steps. One pass over the hits.
//   eligible  what NameRows returned; each thread reads the hits that it wrote itself
__device__ __forceinline__ float PruningCut(const Pass& pass, unsigned query, unsigned count,
                                            unsigned eligible, FinishShared& shared) {
  constexpr float kNoCut = -kHighestScore;  // drops excluded rows only
  const Hit* hits = pass.hits + static_cast<std::size_t>(query) * pass.capacity;
  const unsigned wanted = pass.terms[query].wanted;
  const float low = max(LoadFromL2(pass.gates + query), -kHighestScore);
  const float bins_per_unit = static_cast<float>(kFineBins) / (kHighestScore - low);
  for (unsigned i = threadIdx.x; i < kFineBins; i += blockDim.x) shared.fine[i] = 0;
  if (threadIdx.x == 0) shared.eligible = 0;
  __syncthreads();
  if (eligible != 0) atomicAdd(&shared.eligible, eligible);
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const float score = hits[i].score;
    if (score == kLowestScore) continue;
    const float place =
        min(max((score - low) * bins_per_unit, 0.0F), static_cast<float>(kFineBins - 1));
    atomicAdd(&shared.fine[static_cast<unsigned>(place)], 1U);
  }
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
  if (bin == 0) return kNoCut;  // it has no lower edge
  // The bin's lower edge, less an upper bound of the rounding of `place`.
  constexpr float kPlaceError = 4e-6F;
  return low + static_cast<float>(bin) / bins_per_unit - 2.0F * pass.bound - kPlaceError;
}

// Lists the rows of the hits that can be among the best, in any order. Returns how many.
__device__ __forceinline__ unsigned Prune(const Pass& pass, unsigned query, FinishShared& shared) {
  const unsigned count = HitsHeld(pass, query), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) shared.kept = 0;
  const unsigned eligible = NameRows(pass, query, count);
  const float cut = PruningCut(pass, query, count, eligible, shared);
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  for (unsigned base = 0; base < count; base += blockDim.x) {
    const unsigned i = base + threadIdx.x;
    Hit hit{0, kLowestScore};
    if (i < count) hit = pass.hits[first + i];
    const bool keep = hit.score >= cut;
    const unsigned lanes = __ballot_sync(~0U, keep);
    unsigned slot = 0;
    if (lane == 0 && lanes != 0)
      slot = atomicAdd(&shared.kept, static_cast<unsigned>(__popc(lanes)));
    slot = __shfl_sync(~0U, slot, 0) + static_cast<unsigned>(__popc(lanes & ((1U << lane) - 1)));
    if (keep) pass.kept_rows[first + slot] = hit.position;
  }
  __syncthreads();
  return shared.kept;
}

// Canonical keys of the kept rows, two rows per warp at a time.
//   warp, warps  this warp's index and the number of warps that share the work
__device__ __forceinline__ void Rescore(const Pass& pass, unsigned query, unsigned kept,
                                        unsigned warp, unsigned warps) {
  const unsigned lane = threadIdx.x % 32;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  const float* vector = pass.queries + static_cast<std::size_t>(query) * pass.stride;
  for (unsigned i = warp * 2; i < kept; i += warps * 2) {
    const unsigned a = pass.kept_rows[first + i], b = pass.kept_rows[first + min(i + 1, kept - 1)];
    const ScorePair scores =
        CanonicalScores(vector, pass.rows + static_cast<std::size_t>(a) * pass.stride,
                        pass.rows + static_cast<std::size_t>(b) * pass.stride, pass.stride, lane);
    if (lane == 0) pass.keys[first + i] = MakeKey(scores.first, a);
    if (lane == 1 && i + 1 < kept) pass.keys[first + i + 1] = MakeKey(scores.second, b);
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
  return static_cast<double>(ScoreOf(last)) >= limit ? kProven : kBelowGate;
}

// Orders the keys and writes the answer with its proof. Overwrites the query's hits.
__device__ __forceinline__ void Conclude(const Pass& pass, unsigned query, unsigned kept,
                                         FinishShared& shared) {
  const unsigned wanted = pass.terms[query].wanted;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  Key* scratch = reinterpret_cast<Key*>(pass.hits + first);
  const Key* best = SelectBest(pass.keys + first, scratch, kept, wanted, shared.run);
  const unsigned found = min(kept, wanted);
  Key* out = pass.best + static_cast<std::size_t>(query) * pass.best_stride;
  for (unsigned i = threadIdx.x; i < pass.best_stride; i += blockDim.x) {
    out[i] = i < found ? best[i] : 0;
  }
  if (threadIdx.x == 0) {
    const unsigned hits = LoadFromL2(pass.hit_counts + query);
    const Key last = found == 0 ? 0 : best[found - 1];
    pass.proofs[query] = {Certify(pass, query, hits, kept, last), hits, kept};
  }
}

// All steps in one block. Ends with shared memory free for the next query.
__device__ __forceinline__ void FinishQuery(const Pass& pass, unsigned query,
                                            FinishShared& shared) {
  const unsigned kept = Prune(pass, query, shared);
  Rescore(pass, query, kept, threadIdx.x / 32, blockDim.x / 32);
  __syncthreads();
  Conclude(pass, query, kept, shared);
}

}  // namespace simile::kernels
