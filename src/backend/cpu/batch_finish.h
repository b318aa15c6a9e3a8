#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/candidates.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/row_order_scorer.h"
#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"

namespace simile::backend::cpu {

// Ends passes over the same rows together: the candidates of all their queries are scored row by
// row (RowOrderScorer). Gives the answers of Int8Pass::Finish, faster where rows are candidates of
// several queries each. One batch at a time; keeps its buffers from one to the next.
class BatchFinish {
 public:
  //   candidates_together  so many are scored at a time, or those of one query
  explicit BatchFinish(std::size_t candidates_together)
      : candidates_together_(candidates_together) {}

  // Begins to end these passes.
  //   passes   borrowed. REQUIRES: they are scanned; at most RowOrderScorer::kQueriesMax queries
  //   threads  of the pool it will be run with
  // Throws std::bad_alloc.
  void Begin(std::span<Int8Pass* const> passes, unsigned threads);
  // Scores, ranks and proves until the turn is over. Returns whether that is done. Does not throw.
  bool Advance(ThreadPool& pool, const Int8Segment& segment, const Turn& turn);
  // Of the buffers that grow with queries and their candidates.
  std::uint64_t bytes() const;

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
  // Chooses the next queries whose candidates are scored together.
  void TakeSome();
  bool AdvanceSome(ThreadPool& pool, const Int8Segment& segment, const Turn& turn);
  // Calls work(query, its entry of to_score_, scratch) for each of them, on the threads of the
  // pool. Returns whether that is done.
  template <class Work>
  bool ForEach(ThreadPool& pool, const Turn& turn, Work work);

  const std::size_t candidates_together_;
  std::vector<Query> queries_;                   // of the batch
  std::span<Query> left_;                        // of them, those to come
  std::span<Query> some_;                        // of them, those that are scored together
  StepsDone steps_;                              // with these
  PartsOfJob claimed_;                           // of them, in the step at hand
  base::PageBuffer candidates_;                  // Candidate, of the queries scored together
  std::vector<CandidateScratch> scratch_;        // [thread]
  std::vector<RowOrderScorer::Query> to_score_;  // [query]
  RowOrderScorer scorer_;
};

}  // namespace simile::backend::cpu
