#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/candidates.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/row_order_scorer.h"
#include "backend/cpu/thread_pool.h"
#include "base/page_buffer.h"
#include "certificate/canonical_score.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Ends passes over the same rows together: the candidates of all their queries are scored row by
// row (RowOrderScorer). Gives the answers of Int8Pass::Finish, faster where rows are candidates of
// several queries each. Keeps its buffers from one batch to the next; used by one thread at a time.
class BatchFinish {
 public:
  // Forgets what was added.
  void Clear() { queries_.clear(); }
  // Adds the queries of a scanned pass.
  void Add(Int8Pass& pass);
  // Scores, ranks and proves what was added. Throws std::bad_alloc.
  void Run(ThreadPool& pool, const certificate::CanonicalKernel& kernel, const SegmentRows& rows);

 private:
  struct Query {
    Int8Pass* pass;
    std::size_t number;           // in its pass
    std::size_t candidate_count;  // those that CopyCandidates leaves out included
    std::span<Candidate> candidates;
    std::size_t first = 0;  // how many of these MoveFirst has moved
    std::uint64_t rescored = 0;
  };

  void Reserve(unsigned threads);
  // For queries whose candidates are scored together.
  void RunSome(ThreadPool& pool, const certificate::CanonicalKernel& kernel,
               const SegmentRows& rows, std::span<Query> queries);
  // Calls work(query, its place in wanted_, scratch) for each, on the threads of the pool.
  template <class Work>
  void ForEach(ThreadPool& pool, std::span<Query> queries, Work work);

  std::vector<Query> queries_;
  base::PageBuffer candidates_;                // Candidate, of the queries scored together
  std::vector<CandidateScratch> scratch_;      // [thread]
  std::vector<RowOrderScorer::Query> wanted_;  // [query]  what is scored next
  RowOrderScorer scorer_;
};

}  // namespace simile::backend::cpu
