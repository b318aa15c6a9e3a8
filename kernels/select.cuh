#pragma once

#include "kernels/device.h"
#include "kernels/pass.h"
#include "kernels/rank_keys.h"

// The k greatest of a list of keys, in order, by one block. Runs that fit shared memory are sorted
// there (bitonic), then merged in pairs: keys are distinct, so a key's place is its own index plus
// its rank in the partner run. Only the first k keys of a run take part in the next merge.

namespace simile::kernels {

inline constexpr unsigned kRunKeys = 2048;

// How many keys of a descending run are greater than this one.
__device__ __forceinline__ unsigned RankIn(const Key* run, unsigned length, Key key) {
  unsigned low = 0, high = length;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (run[middle] > key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Sorts keys[0, length) in place, descending.
//   run  [kRunKeys] in shared memory
// REQUIRES: length <= kRunKeys. Ends with a barrier.
__device__ __forceinline__ void SortRun(Key* keys, unsigned length, Key* run) {
  unsigned size = 1;
  while (size < length) size *= 2;
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) run[i] = i < length ? keys[i] : 0;
  __syncthreads();
  for (unsigned width = 2; width <= size; width *= 2) {
    for (unsigned step = width / 2; step != 0; step /= 2) {
      for (unsigned pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
        const unsigned i = (pair & ~(step - 1)) * 2 + (pair & (step - 1)), j = i + step;
        const Key a = run[i], b = run[j];
        if ((a < b) == ((i & width) == 0)) {
          run[i] = b;
          run[j] = a;
        }
      }
      __syncthreads();
    }
  }
  for (unsigned i = threadIdx.x; i < length; i += blockDim.x) keys[i] = run[i];
  __syncthreads();
}

// Merges neighbouring runs of `width` keys; the first k keys of each merged run are valid.
__device__ __forceinline__ void MergeRuns(const Key* from, Key* to, unsigned count, unsigned width,
                                          unsigned k) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const unsigned start = i / (2 * width) * (2 * width);
    const unsigned middle = min(start + width, count), end = min(start + 2 * width, count);
    const bool left = i < middle;
    const unsigned mine = i - (left ? start : middle);
    if (mine >= k) continue;
    const Key key = from[i];
    const unsigned others = left ? RankIn(from + middle, min(end - middle, k), key)
                                 : RankIn(from + start, min(middle - start, k), key);
    if (mine + others < k) to[start + mine + others] = key;
  }
  __syncthreads();
}

// Moves the k greatest of keys[0, count) to the front, in order; the others are lost. Returns the
// array that holds them: keys or scratch.
//   scratch  as large as keys
//   run      [kRunKeys] in shared memory
// REQUIRES: a barrier since the keys were written. Ends with a barrier.
__device__ __forceinline__ Key* SelectBest(Key* keys, Key* scratch, unsigned count, unsigned k,
                                           Key* run) {
  for (unsigned base = 0; base < count; base += kRunKeys) {
    SortRun(keys + base, min(kRunKeys, count - base), run);
  }
  Key* from = keys;
  Key* to = scratch;
  for (unsigned width = kRunKeys; width < count; width *= 2) {
    MergeRuns(from, to, count, width, k);
    Key* const merged = to;
    to = from;
    from = merged;
  }
  return from;
}

// Writes an answer, best first. Returns how many of its hits reach the query's threshold, in all
// threads of the block.
//   keys     [count], descending
//   scratch  in shared memory
__device__ __forceinline__ unsigned WriteAnswer(const Pass& pass, unsigned query, const Key* keys,
                                                unsigned count, unsigned& scratch) {
  AnswerHit* const answer = pass.best + static_cast<std::size_t>(query) * pass.best_stride;
  const float threshold = pass.terms[query].threshold;
  if (threadIdx.x == 0) scratch = 0;
  __syncthreads();
  int reaching = 0;  // of this thread's
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const Key key = keys[i];
    const float score = ScoreOf(key);
    answer[i] = {pass.first_row + ~static_cast<unsigned>(key), score};
    if (score >= threshold) ++reaching;
  }
  reaching = WarpSum(reaching);
  if (threadIdx.x % 32 == 0) atomicAdd(&scratch, static_cast<unsigned>(reaching));
  __syncthreads();
  return scratch;
}

}  // namespace simile::kernels
