#pragma once

#include "kernels/device.h"
#include "kernels/pass.h"

// The k greatest of a list of keys, in order, by one block of kSelectThreads. A run has as many
// keys as the block's threads hold in registers. Each warp sorts a part of a run (bitonic), and
// parts are merged in pairs in shared memory. Keys are distinct, so a key's place is its own index
// plus its rank in the partner part. Longer lists are several runs, merged in the same way in
// global memory. Only the first k keys of a part or run take part in the next merge.

namespace simile::kernels {

// simile::RankKey in kernels, with the same packing.

__device__ __forceinline__ unsigned OrderedBits(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// REQUIRES: score is not -0; row < 2^32 - 1, so that no key is 0.
__device__ __forceinline__ Key MakeKey(float score, unsigned row) {
  return static_cast<Key>(OrderedBits(score)) << 32 | static_cast<Key>(~row);
}

__device__ __forceinline__ float ToScore(Key key) {
  const auto ordered = static_cast<unsigned>(key >> 32);
  return __uint_as_float((ordered & 0x80000000U) != 0 ? ordered & 0x7fffffffU : ~ordered);
}

inline constexpr unsigned kSelectThreads = 256;
inline constexpr unsigned kKeysOfLane = 8;  // of long lists
inline constexpr unsigned kRunKeys = kSelectThreads * kKeysOfLane;

// Sorts the keys of a warp, descending: lane 0 gets the greatest kKeys, lane 1 the next. Loops
// over lanes are not unrolled: the code of all steps would not stay in the instruction cache.
//   keys  [kKeys] of each lane
// REQUIRES: all lanes call it.
template <unsigned kKeys>
__device__ __forceinline__ void SortWarp(Key (&keys)[kKeys]) {
  const unsigned first = threadIdx.x % 32 * kKeys;
#pragma unroll 1
  for (unsigned width = 2; width <= 32 * kKeys; width *= 2) {
#pragma unroll 1
    for (unsigned step = width / 2; step >= kKeys; step /= 2) {
      const bool takes_greater = ((first & step) == 0) == ((first & width) == 0);
#pragma unroll
      for (unsigned i = 0; i < kKeys; ++i) {
        const Key other = __shfl_xor_sync(~0U, keys[i], static_cast<int>(step / kKeys));
        if ((other > keys[i]) == takes_greater) keys[i] = other;
      }
    }
#pragma unroll
    for (unsigned step = kKeys / 2; step != 0; step /= 2) {
      if (step >= width) continue;
#pragma unroll
      for (unsigned i = 0; i < kKeys; ++i) {
        if ((i & step) != 0) continue;
        const Key a = keys[i], b = keys[i + step];
        if ((a < b) == (((first + i) & width) == 0)) {
          keys[i] = b;
          keys[i + step] = a;
        }
      }
    }
  }
}

// Sorts each part of 32 * kKeys keys. Ends with a barrier.
//   keys  [length]
//   run   [kSelectThreads * kKeys] in shared memory, the result
// REQUIRES: length <= kSelectThreads * kKeys.
template <unsigned kKeys>
__device__ __forceinline__ void SortParts(const Key* keys, unsigned length, Key* run) {
  const unsigned lane = threadIdx.x % 32, first = (threadIdx.x - lane) * kKeys;
  if (first < length) {  // the same in all lanes
    Key mine[kKeys];
#pragma unroll
    for (unsigned i = 0; i < kKeys; ++i) {
      const unsigned at = first + i * 32 + lane;
      mine[i] = at < length ? keys[at] : 0;
    }
    SortWarp(mine);
#pragma unroll
    for (unsigned i = 0; i < kKeys; ++i) run[first + lane * kKeys + i] = mine[i];
  }
  __syncthreads();
}

inline constexpr unsigned kNoPlace = ~0U;

// The places of keys after neighbouring parts of `width` keys are merged.
//   keys    [count], in parts; the first k keys of each part are in order, descending
//   first   index of the first of kKeys keys, which lie kSelectThreads apart
//   width   a power of two
//   mine    the keys at first, first + kSelectThreads, ...
//   places  of the keys; kNoPlace: not among the first k keys of the merged part, or no key
// The searches of all keys go step by step together, so that their loads are in flight together.
template <unsigned kKeys>
__device__ __forceinline__ void FindPlaces(const Key* keys, unsigned first, unsigned count,
                                           unsigned width, unsigned k, Key (&mine)[kKeys],
                                           unsigned (&places)[kKeys]) {
  unsigned partners[kKeys], lengths[kKeys], greater[kKeys] = {};
#pragma unroll
  for (unsigned j = 0; j < kKeys; ++j) {
    const unsigned i = first + j * kSelectThreads, start = i & ~(2 * width - 1);
    const unsigned middle = min(start + width, count), end = min(start + 2 * width, count);
    const bool is_left = i < middle;
    places[j] = i - (is_left ? start : middle);  // index in the key's own part
    if (i >= count) places[j] = kNoPlace;
    if (places[j] >= k) places[j] = kNoPlace;
    partners[j] = is_left ? middle : start;
    lengths[j] = places[j] == kNoPlace ? 0 : min(is_left ? end - middle : middle - start, k);
    mine[j] = places[j] == kNoPlace ? 0 : keys[i];
  }
#pragma unroll 1
  for (unsigned step = width; step != 0; step /= 2) {
#pragma unroll
    for (unsigned j = 0; j < kKeys; ++j) {
      const unsigned next = greater[j] + step;
      if (next <= lengths[j] && keys[partners[j] + next - 1] > mine[j]) greater[j] = next;
    }
  }
#pragma unroll
  for (unsigned j = 0; j < kKeys; ++j) {
    if (places[j] == kNoPlace) continue;
    const unsigned i = first + j * kSelectThreads, start = i & ~(2 * width - 1);
    const unsigned rank = places[j] + greater[j];
    places[j] = rank < k ? start + rank : kNoPlace;
  }
}

// Merges neighbouring parts of `width` keys in place, as FindPlaces says. Ends with a barrier.
//   run  [count] in shared memory
// REQUIRES: count <= kSelectThreads * kKeys, and a barrier since the parts were written.
template <unsigned kKeys>
__device__ __forceinline__ void MergeParts(Key* run, unsigned count, unsigned width, unsigned k) {
  constexpr unsigned kAtOnce = kKeys < 2 ? kKeys : 2;  // more would not fit 80 registers
  Key keys[kKeys / kAtOnce][kAtOnce];
  unsigned places[kKeys / kAtOnce][kAtOnce];
#pragma unroll
  for (unsigned i = 0; i < kKeys / kAtOnce; ++i) {
    const unsigned first = threadIdx.x + i * kAtOnce * kSelectThreads;
    FindPlaces(run, first, count, width, k, keys[i], places[i]);
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < kKeys; ++i) {
    const unsigned place = places[i / kAtOnce][i % kAtOnce];
    if (place != kNoPlace) run[place] = keys[i / kAtOnce][i % kAtOnce];
  }
  __syncthreads();
}

// Writes the min(length, k) greatest of keys[0, length) to the run, in order. Sorts parts of
// 32 * kKeys keys and merges them. Ends with a barrier.
// REQUIRES: length <= kSelectThreads * kKeys.
template <unsigned kKeys>
__device__ __forceinline__ void SortByParts(const Key* keys, unsigned length, unsigned k,
                                            Key* run) {
  SortParts<kKeys>(keys, length, run);
#pragma unroll 1
  for (unsigned width = 32 * kKeys; width < length; width *= 2) {
    MergeParts<kKeys>(run, length, width, k);
  }
}

// As SortByParts. Sorts a short list with one key a lane, so that more warps sort.
template <unsigned kKeys>
__device__ __forceinline__ void SortRun(const Key* keys, unsigned length, unsigned k, Key* run) {
  if (kKeys == 1 || length > kSelectThreads) {
    SortByParts<kKeys>(keys, length, k, run);
  } else {
    SortByParts<1>(keys, length, k, run);
  }
}

// Merges neighbouring runs of `width` keys in global memory. Ends with a barrier.
__device__ __forceinline__ void MergeRuns(const Key* from, Key* to, unsigned count, unsigned width,
                                          unsigned k) {
  for (unsigned i = threadIdx.x; i < count; i += kSelectThreads) {
    Key key[1];
    unsigned place[1];
    FindPlaces(from, i, count, width, k, key, place);
    if (place[0] != kNoPlace) to[place[0]] = key[0];
  }
  __syncthreads();
}

// Finds the k greatest of keys[0, count), in order. Returns the array that begins with them: run,
// keys or scratch. The other keys are lost.
//   kKeys    in the registers of a thread: 1 for short lists, else kKeysOfLane
//   scratch  as large as keys
//   run      [kSelectThreads * kKeys] in shared memory
// REQUIRES: a block of kSelectThreads, and a barrier since the keys were written. Ends with a
// barrier.
template <unsigned kKeys>
__device__ __forceinline__ Key* SelectBest(Key* keys, Key* scratch, unsigned count, unsigned k,
                                           Key* run) {
  constexpr unsigned kRun = kSelectThreads * kKeys;
#pragma unroll 1
  for (unsigned base = 0; base < count; base += kRun) {
    const unsigned length = min(kRun, count - base);
    SortRun<kKeys>(keys + base, length, k, run);
    if (count <= kRun) return run;
    for (unsigned i = threadIdx.x; i < min(length, k); i += kSelectThreads) {
      keys[base + i] = run[i];
    }
    __syncthreads();
  }
  Key* from = keys;
  Key* to = scratch;
#pragma unroll 1
  for (unsigned width = kRun; width < count; width *= 2) {
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
  int reaching = 0;  // of this thread's hits
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const Key key = keys[i];
    const float score = ToScore(key);
    answer[i] = {pass.first_row + ~static_cast<unsigned>(key), score};
    if (score >= threshold) ++reaching;
  }
  reaching = WarpSum(reaching);
  if (threadIdx.x % 32 == 0) atomicAdd(&scratch, static_cast<unsigned>(reaching));
  __syncthreads();
  return scratch;
}

}  // namespace simile::kernels
