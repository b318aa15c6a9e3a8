#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/thread_pool.h"
#include "certificate/canonical_score.h"
#include "certificate/top_k.h"
#include "simile/query.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// The calling thread alone does fewer multiply-adds than this. Waking another thread and waiting
// for it pays from about 90 us on (docs/design/cpu-engine.md).
inline constexpr std::size_t kSmallWork = 1U << 20;

// How a search is divided into pieces. A piece is one block of rows against one group of queries.
// The pieces of one block follow each other, so that the block is read from memory once and is in
// cache for its other groups.
struct ScanPlan {
  std::size_t block_rows = 0;
  std::size_t block_count = 0;
  std::size_t group_queries = 0;
  std::size_t group_count = 0;
  unsigned threads = 1;  // threads that pay for this much work

  std::size_t piece_count() const { return block_count * group_count; }
};

// Divides row_count rows and query_count queries of padded_dim floats for up to `threads` threads.
// Pure. REQUIRES: everything >= 1.
ScanPlan PlanScan(std::size_t row_count, std::size_t query_count, std::size_t padded_dim,
                  unsigned threads);

// The number of queries of `specs`, from the first on, that one pass can answer within the memory
// limit for their hits: at least one. The other queries need another pass. Pure.
std::size_t QueriesOfOnePass(std::span<const QuerySpec> specs, std::size_t row_count,
                             unsigned threads);

// The buffers that one thread of a pass writes to. They only grow, so that a warm search allocates
// nothing.
struct alignas(64) ScanScratch {
  std::vector<float> scores;                  // [group_queries, block_rows]
  std::vector<RankKey> keys;                  // the collectors' buffers, one after the other
  std::vector<certificate::TopK> collectors;  // [query]
  std::vector<std::uint64_t> rows_scanned;    // [query]
  bool joined = false;                        // whether the thread took part in this pass
};

// One pass over a segment for as many queries as QueriesOfOnePass allows.
class ScanPass {
 public:
  // Allocates the buffers of the pass.
  //   batch, first_query, query_count  the queries of the batch; their answers have the same
  //                                    indexes in result
  //   scratch                          one for each thread of the pool
  // REQUIRES: result has been Reset for the whole batch. Throws std::bad_alloc.
  ScanPass(const certificate::CanonicalKernel& kernel, const SegmentRows& rows,
           const SearchBatch& batch, std::size_t first_query, std::size_t query_count,
           std::vector<ScanScratch>& scratch, SearchResult& result);

  // Scores, collects and merges until the turn is over. Returns whether the pass is done. Does not
  // throw.
  bool Advance(ThreadPool& pool, const Turn& turn);

 private:
  void Join(ScanScratch& scratch) const;
  void ScanPieces(unsigned participant, const Turn& turn);
  bool ClaimPieces(std::size_t& begin, std::size_t& end);
  void ScanPiece(ScanScratch& scratch, std::size_t piece) const;
  void Collect(ScanScratch& scratch, std::size_t query, std::size_t first_index,
               std::span<const float> scores) const;
  void MergeQuery(std::size_t query);

  const QuerySpec& Spec(std::size_t query) const { return batch_.specs[first_query_ + query]; }

  const certificate::CanonicalKernel& kernel_;
  const SegmentRows& rows_;
  const SearchBatch batch_;
  const std::size_t first_query_;
  const std::size_t query_count_;  // queries are numbered from 0 inside the pass
  const ScanPlan plan_;
  const std::size_t pieces_at_once_;
  std::vector<ScanScratch>& scratch_;
  SearchResult& result_;
  StepsDone steps_;
  std::atomic<std::size_t> next_piece_{0};
  PartsOfJob merged_;
};

}  // namespace simile::backend::cpu
