#include "kernels/answers.h"

#include <algorithm>

#include "kernels/canonical.cuh"
#include "kernels/row_filter.cuh"
#include "kernels/select.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreads = kSelectThreads;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kBlocksMax = 2'048;
constexpr unsigned kBlocksToFill = 512;  // estimated: four per multiprocessor of an H200

// The row at a place of a query's list, or at a position. Equal in all lanes.
struct Candidate {
  unsigned row;
  bool passes;
};
__device__ __forceinline__ Candidate CandidateAt(const Pass& pass, const QueryTerms& terms,
                                                 unsigned place, unsigned end) {
  if (place >= end) return {0, false};
  if (terms.list != nullptr) return {__ldg(terms.list + place), true};
  return {__ldg(pass.row_of + place), MaskPasses(terms, place)};
}

// Two neighbouring places, whose rows a warp scores at once.
struct CandidatePair {
  Candidate a, b;
};
__device__ __forceinline__ CandidatePair PairAt(const Pass& pass, const QueryTerms& terms,
                                                unsigned place, unsigned end) {
  return {CandidateAt(pass, terms, place, end), CandidateAt(pass, terms, place + 1, end)};
}

// One pair per warp until the card is full, then up to four pairs, which share the query in L1.
unsigned BlocksFor(unsigned row_count) {
  constexpr unsigned kRows = 2 * kWarps;
  const unsigned widest = (row_count + kRows - 1) / kRows;
  return std::clamp(std::max(widest / 4, std::min(widest, kBlocksToFill)), 1U, kBlocksMax);
}

}  // namespace

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    CanonicalScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                        const SIMILE_GRID_CONSTANT ScanStep step, const Key* thresholds) {
  const unsigned query = blockIdx.y, lane = threadIdx.x % 32;
  const QueryTerms& terms = pass.terms[query];
  if (terms.wanted == 0) return;  // the whole block returns
  const float* vector = pass.queries + static_cast<std::size_t>(query) * pass.stride;
  const Key threshold = thresholds[query];
  const unsigned limit = terms.list != nullptr ? terms.list_count : pass.row_count;
  const unsigned end = min(step.first + step.count, limit);
  const unsigned stride = gridDim.x * kWarps * 2;
  unsigned place = step.first + (blockIdx.x * kWarps + threadIdx.x / 32) * 2;
  CandidatePair next = PairAt(pass, terms, place, end);
  for (; place < end; place += stride) {
    auto [a, b] = next;
    next = PairAt(pass, terms, place + stride, end);  // arrives while this pair is scored
    if (!a.passes && !b.passes) continue;
    if (!a.passes) a.row = b.row;
    if (!b.passes) b.row = a.row;
    const ScorePair scores = CanonicalScores(
        vector, pass.rows + static_cast<std::size_t>(a.row) * pass.stride,
        pass.rows + static_cast<std::size_t>(b.row) * pass.stride, pass.stride, lane);
    const Candidate mine = lane == 0 ? a : b;
    const Key key = MakeKey(lane == 0 ? scores.first : scores.second, mine.row);
    if (lane < 2 && mine.passes && key > threshold && !IsExcluded(terms, mine.row)) {
      const unsigned slot = atomicAdd(pass.hit_counts + query, 1U);
      if (slot < pass.capacity) {
        pass.keys[static_cast<std::size_t>(query) * pass.capacity + slot] = key;
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    SelectKeysKernel(const SIMILE_GRID_CONSTANT Pass pass, Key* thresholds) {
  __shared__ SharedArray<Key, kRunKeys> run;
  __shared__ SharedArray<unsigned, 1> sum;
  const unsigned query = blockIdx.x, wanted = pass.terms[query].wanted;
  const std::size_t first = static_cast<std::size_t>(query) * pass.capacity;
  const unsigned count = min(pass.hit_counts[query], pass.capacity);
  Key* const keys = pass.keys + first;
  Key* const scratch = reinterpret_cast<Key*>(pass.hits + first);
  const Key* best = SelectBest<kKeysOfLane>(keys, scratch, count, wanted, run.data());
  const unsigned kept = min(count, wanted);
  const unsigned found = WriteAnswer(pass, query, best, kept, sum[0]);
  if (best != keys) {
    for (unsigned i = threadIdx.x; i < kept; i += kThreads) keys[i] = best[i];
  }
  if (threadIdx.x == 0) {
    pass.proofs[query] = {kProven, kept, kept, found};
    pass.hit_counts[query] = kept;
    thresholds[query] = wanted != 0 && kept == wanted ? best[kept - 1] : 0;
  }
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    RowScoresKernel(const SIMILE_GRID_CONSTANT Pass pass, const unsigned* list, unsigned count,
                    float* scores) {
  const unsigned query = blockIdx.y, lane = threadIdx.x % 32;
  const float* vector = pass.queries + static_cast<std::size_t>(query) * pass.stride;
  float* out = scores + static_cast<std::size_t>(query) * count;
  for (unsigned i = (blockIdx.x * kWarps + threadIdx.x / 32) * 2; i < count;
       i += gridDim.x * kWarps * 2) {
    const unsigned a = __ldg(list + i), b = __ldg(list + min(i + 1, count - 1));
    const ScorePair pair =
        CanonicalScores(vector, pass.rows + static_cast<std::size_t>(a) * pass.stride,
                        pass.rows + static_cast<std::size_t>(b) * pass.stride, pass.stride, lane);
    if (lane == 0) out[i] = pair.first;
    if (lane == 1 && i + 1 < count) out[i + 1] = pair.second;
  }
}

cudaError_t LaunchCanonicalScan(const Pass& pass, const ScanStep& step, const Key* thresholds,
                                cudaStream_t stream) {
  return Launch(CanonicalScanKernel, dim3(BlocksFor(step.count), pass.batch), dim3(kThreads), 0,
                stream, pass, step, thresholds);
}

cudaError_t LaunchSelectKeys(const Pass& pass, Key* thresholds, cudaStream_t stream) {
  return Launch(SelectKeysKernel, dim3(pass.batch), dim3(kThreads), 0, stream, pass, thresholds);
}

cudaError_t LaunchRowScores(const Pass& pass, const unsigned* list, unsigned count, float* scores,
                            cudaStream_t stream) {
  return Launch(RowScoresKernel, dim3(BlocksFor(count), pass.batch), dim3(kThreads), 0, stream,
                pass, list, count, scores);
}

}  // namespace simile::kernels
