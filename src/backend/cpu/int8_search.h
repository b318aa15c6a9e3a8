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

// Ends passes over the same rows together: scores the candidates of all their queries row by row
// (RowOrderScorer). Gives the same answers as Int8Pass::Finish, and faster when a row is a
// candidate of several queries. One batch at a time; keeps its buffers for the next batch.
class BatchFinish {
 public:
  //   candidates_together  the most candidates that are scored at a time, except that one query is
  //                        never divided
  explicit BatchFinish(std::size_t candidates_together)
      : candidates_together_(candidates_together) {}

  // Begins to end these passes.
  //   passes   borrowed. REQUIRES: they are scanned; at most RowOrderScorer::kQueriesMax queries
  //   threads  of the pool it will be run with
  // Throws std::bad_alloc.
  void Begin(std::span<Int8Pass* const> passes, unsigned threads);
  // Scores, ranks and proves until the turn is over. Returns whether that is done. Does not throw.
  bool Advance(ThreadPool& pool, const Int8Segment& segment, const Turn& turn);
  // The bytes of the buffers that grow with queries and their candidates.
  std::uint64_t bytes() const;

 private:
  struct Query {
    Int8Pass* pass;
    std::size_t query_of_pass;
    std::size_t candidate_count;  // at most
    std::span<Candidate> all;
    std::size_t first = 0;  // the number that MoveExpectedFirst returned
    std::uint64_t rescored = 0;
  };

  void List(std::span<Int8Pass* const> passes);
  void Reserve(unsigned threads);
  // Chooses the next queries whose candidates are scored together.
  void TakeSome();
  bool AdvanceSome(ThreadPool& pool, const Int8Segment& segment, const Turn& turn);
  // Calls work(query, its entry of to_score_, scratch) for each query of some_, on the threads of
  // the pool. Returns whether all are done.
  template <class Work>
  bool ForEach(ThreadPool& pool, const Turn& turn, Work work);

  const std::size_t candidates_together_;
  std::vector<Query> queries_;                   // of the batch
  std::span<Query> left_;                        // queries still to come
  std::span<Query> some_;                        // queries that are scored together now
  StepsDone steps_;                              // done with some_
  PartsOfJob claimed_;                           // of some_, in the current step
  base::PageBuffer candidates_;                  // Candidate, of some_
  std::vector<CandidateScratch> scratch_;        // [thread]
  std::vector<RowOrderScorer::Query> to_score_;  // [query]
  RowOrderScorer scorer_;
};

// The names of the engine's strategies in answers.
struct Int8Names {
  std::string scan;
  std::string gather;
  std::string large;
  std::string small;
  std::string int4;
};

// The kernel and the width of the codes with which a pass begins, by its number of queries. Pure.
const Int8Kernel& KernelFor(const Int8Options& options, std::size_t query_count);
CodeWidth WidthFor(std::size_t query_count, const PackedRows& packed);
// The engine's name in the receipts of answers by this kernel and width.
const std::string& ChooseName(const Int8Options& options, const Int8Names& names,
                              const Int8Kernel& kernel, CodeWidth width);

// One search of the certified engine: chooses a strategy for each query, and may be paused between
// two pieces of work. Keeps its buffers for the next search. Used by one thread at a time.
class Int8Search {
 public:
  //   options, names  borrowed
  //   threads         of the pool it will be run with
  Int8Search(const Int8Options& options, const Int8Names& names, unsigned threads);

  // Ends the previous search and begins a new one. Borrows all arguments.
  //   packed  null while the rows are not packed
  // Throws std::bad_alloc.
  void Begin(const SegmentRows& rows, const PackedRows* packed, const SearchBatch& batch,
             SearchResult& result);
  // Continues until the turn is over. Returns whether the search is done. Throws std::bad_alloc.
  bool Advance(ThreadPool& pool, const Turn& turn);
  // Forgets all borrowed arguments.
  void End();

  // The bytes of the buffers that grow with queries and their hits.
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
    std::optional<Int8Pass> pass;  // while the pass is under way
    bool done = false;             // with the current step
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
  // Calls work(pass) for each share until it returns true. Returns whether it did for all shares.
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
  std::size_t group_ = 0;  // the mask group that is gathered now
  bool group_begun_ = false;
  // Of the pass:
  std::span<const std::uint32_t> queries_left_;  // for later passes
  bool speculative_ = true;
  std::optional<Int8Segment> segment_;  // while the pass is under way
  std::optional<Int8Pass> pass_;        // nothing when its queries are divided into shares
  std::vector<Int8Pass*> passes_;       // pass_, or the passes of the shares
  bool by_row_ = false;
  StepsDone pass_steps_;
  std::vector<Share*> open_shares_;  // not done with the current step
  PartsOfJob shares_claimed_;
  std::size_t first_open_ = 0;  // first of open_shares_ in the next turn
};

}  // namespace simile::backend::cpu
