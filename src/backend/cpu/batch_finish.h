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

namespace simile::backend::cpu {

// Ends passes over the same rows together: the candidates of all their queries are scored row by
// row (RowOrderScorer). Gives the answers of Int8Pass::Finish, faster where rows are candidates of
// several queries each. Keeps its buffers from one batch to the next; used by one thread at a time.
class BatchFinish {
 public:
  //   candidates_together  so many are scored at a time, or those of one query
  explicit BatchFinish(std::size_t candidates_together)
      : candidates_together_(candidates_together) {}

  // Scores, ranks and proves.
  //   passes  borrowed. REQUIRES: they are scanned; at most RowOrderScorer::kQueriesMax queries
  // Throws std::bad_alloc.
  void Run(ThreadPool& pool, const Int8Segment& segment, std::span<Int8Pass* const> passes);

 private:
  struct Query {
    Int8Pass* pass;
    std::size_t query_of_pass;
    std::size_t candidate_count;  // at most
    std::span<Candidate> all;
    std::size_t first = 0;  // how many of these MoveExpectedFirst has moved
    std::uint64_t rescored = 0;
  };

  void List(std::span<Int8Pass* const> passes);
  void Reserve(unsigned threads);
  // For queries whose candidates are scored together.
  void RunSome(ThreadPool& pool, const Int8Segment& segment, std::span<Query> queries);
  // Calls work(query, its entry of to_score_, scratch) for each, on the threads of the pool.
  template <class Work>
  void ForEach(ThreadPool& pool, std::span<Query> queries, Work work);

  const std::size_t candidates_together_;
  std::vector<Query> queries_;                   // of the call
  base::PageBuffer candidates_;                  // Candidate, of the queries scored together
  std::vector<CandidateScratch> scratch_;        // [thread]
  std::vector<RowOrderScorer::Query> to_score_;  // [query]
  RowOrderScorer scorer_;
};

}  // namespace simile::backend::cpu
