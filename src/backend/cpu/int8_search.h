#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/candidates.h"
#include "backend/cpu/gather.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/row_order_scorer.h"
#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"
#include "simile/segment.h"

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

// How the strategies of the engine are called in answers.
struct Int8Names {
  std::string scan;
  std::string gather;
  std::string large;
  std::string small;
  std::string int4;
};

// The kernel and the codes with which a pass begins, by its number of queries. Pure.
const Int8Kernel& KernelFor(const Int8Options& options, std::size_t query_count);
CodeWidth WidthFor(std::size_t query_count, const PackedRows& packed);
// The engine's name in the receipts of answers by this kernel and width.
const std::string& ChooseName(const Int8Options& options, const Int8Names& names,
                              const Int8Kernel& kernel, CodeWidth width);

// One search of the certified engine with the buffers that it takes, which are kept for the next:
// chooses a strategy for each query, and may be paused between two pieces of work. Used by one
// thread at a time.
class Int8Search {
 public:
  //   options, names  borrowed
  //   threads         of the pool it will be run with
  Int8Search(const Int8Options& options, const Int8Names& names, unsigned threads);

  // Begins a search, and ends the one before. Borrows all of it.
  //   packed  null where the rows are not packed, or not yet
  // Throws std::bad_alloc.
  void Begin(const SegmentRows& rows, const PackedRows* packed, const SearchBatch& batch,
             SearchResult& result);
  // Searches on until the turn is over. Returns whether the search is done. Throws std::bad_alloc.
  bool Advance(ThreadPool& pool, const Turn& turn);
  // Lets go of what it has borrowed.
  void End();

  // Of the buffers that grow with queries and their hits.
  std::uint64_t bytes() const;

 private:
  // Queries of the batch that share a mask, neighbours in masked_.
  struct MaskGroup {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t passing = 0;  // rows
    bool gathered = false;
  };
  // One thread's part of a pass whose queries are divided.
  struct Share {
    Int8Memory memory{1};
    std::optional<Int8Pass> pass;  // while such a pass is under way
    bool done = false;             // with the step at hand
  };

  void ListMasks();
  bool CountPassing(const Turn& turn);
  void ChooseGathers();
  std::span<const std::uint32_t> QueriesOf(const MaskGroup& group) const {
    return std::span(masked_).subspan(group.first, group.count);
  }
  bool AdvanceGathers(ThreadPool& pool, const Turn& turn);

  void BeginPasses(bool speculative);
  bool AdvancePasses(ThreadPool& pool, const Turn& turn);
  void BeginPass();
  // Gives each thread a pass over all rows for its share of the queries.
  void BeginShares(std::span<const std::uint32_t> queries);
  bool AdvancePass(ThreadPool& pool, const Turn& turn);
  void BeginFinish();
  // Calls work(pass) for each share until it returns true. Returns whether all have.
  template <class Work>
  bool ForEachShare(ThreadPool& pool, const Turn& turn, Work work);
  bool FinishesByRow(std::span<const std::uint32_t> queries) const;
  void Conclude(const Int8Pass& pass);
  void DropPass();

  const Int8Options& options_;
  const Int8Names& names_;
  ScanSearch scan_;
  Gather gather_;
  Int8Memory memory_;
  BatchFinish finish_;
  ThreadPool alone_{1};  // has no threads of its own
  std::vector<Share> shares_;

  // Of the search:
  const SegmentRows* rows_ = nullptr;
  const PackedRows* packed_ = nullptr;
  SearchBatch batch_;
  SearchResult* result_ = nullptr;
  StepsDone steps_;
  std::vector<std::uint32_t> scanned_;  // queries
  std::vector<std::uint32_t> uncertain_;
  std::vector<std::uint32_t> masked_;  // by mask
  std::vector<MaskGroup> groups_;
  std::size_t groups_counted_ = 0;
  std::size_t group_ = 0;  // that is gathered for
  bool group_begun_ = false;
  // Of the pass:
  std::span<const std::uint32_t> queries_left_;  // after it
  bool speculative_ = true;
  std::optional<Int8Segment> segment_;  // while it is under way
  std::optional<Int8Pass> pass_;        // nothing where its queries are divided
  std::vector<Int8Pass*> passes_;       // it, or those of the shares
  bool by_row_ = false;
  StepsDone pass_steps_;
  std::vector<Share*> open_shares_;  // that are not done with the step at hand
  PartsOfJob shares_claimed_;
  std::size_t first_open_ = 0;  // of these, in the next turn
};

}  // namespace simile::backend::cpu
