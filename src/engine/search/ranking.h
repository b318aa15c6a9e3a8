#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "certificate/combined_score.h"
#include "engine/search/execution.h"
#include "engine/search/resolved_query.h"
#include "engine/search/row_scorer.h"
#include "engine/search/search_workspace.h"
#include "simile/hits.h"

namespace simile::engine {

// What a query that one search does not answer needs next.
enum class Step : std::uint8_t {
  kSearch,  // a search, together with those of others
  kWork,    // a piece of work of its own
  kDone,
};

// Finds the exact best rows for one query, in as many rounds as that takes: one for a query with
// one vector, mostly one for several. A round is a search, and mostly pieces of work after it.
// Where several vectors make a score, each probe's list of best rows proposes candidates, the
// candidates get their scores, and a bound on the score of every other row proves that the k best
// are among them. If it does not, the next round asks for longer lists, and in the end every row is
// scored. Borrows all it is made from.
class Ranking {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   execution  what ranking costs is added to it
  // Throws std::bad_alloc, as do all methods.
  Ranking(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
          SegmentSearch& search, Execution& execution);

  // How many rows each search of the first round of a ranking of the best k asks for.
  static std::uint32_t FirstListLength(Scoring scoring, std::uint32_t k);

  // Starts a ranking of the best k rows that pass mask (null: all), exclusions and threshold.
  //   mask  borrowed until the ranking is done
  void Begin(std::uint32_t k, const RowMask* mask);
  // The same without a search: scores every one of those rows.
  void BeginWithoutSearch(std::size_t k, const RowMask* mask);
  // Scores every one of those rows and only offers them. REQUIRES: the query has no order.
  void BeginOffering(const RowMask* mask, RowScorer::Offer offer);

  // What comes next: AddSearches and then ReadResults, Work, or reading hits().
  Step next() const { return next_; }
  void AddSearches(SearchBatchBuilder& builder);
  // Reads the results of those searches.
  void ReadResults(const SearchResult& result);
  // One piece. Errors: the backend's.
  absl::Status Work();

  // Best first; fewer than k when fewer rows pass.
  const std::vector<Hit>& hits() const { return hits_; }
  // Of a query with an order: how many of hits() it lists (OrderedRows).
  std::size_t listed_count() const { return listed_count_; }
  // Moves hits() out; there are none until the next Begin.
  std::vector<Hit> TakeHits() { return std::move(hits_); }

 private:
  void BeginRound();
  void MakeProbes(MatrixView vectors, const Snapshot& snapshot);
  std::size_t probe_count() const { return probes_.size() / padded_dim_; }
  std::vector<Row> CollectCandidates(const SearchResult& result) const;
  float CeilingOfOthers(const SearchResult& result) const;
  // Whether no row that was not proposed can be among the k best.
  bool IsProven() const;
  void LengthenLists();

  const ResolvedQuery& query_;
  const std::size_t row_count_;
  const std::size_t padded_dim_;
  Execution& execution_;
  RowScorer scorer_;
  std::optional<OrderedRows> ordered_;  // of a query with an order
  std::size_t listed_count_ = 0;
  std::vector<float> probes_;        // [probes, padded_dim], searched for; none: score all rows
  certificate::SumBound sum_bound_;  // of Scoring::kSumScores

  std::size_t k_ = 0;
  const RowMask* mask_ = nullptr;
  Step next_ = Step::kDone;
  std::uint32_t list_k_ = 0;      // hits of each probe; 0: every row is scored instead
  std::size_t rounds_ = 0;        // begun so far
  std::size_t first_search_ = 0;  // of the probes, in the round's batch
  // Of the last search: an upper bound of the score of every row that it did not propose; nothing
  // when it proposed every row that passes.
  std::optional<float> ceiling_of_others_;
  std::vector<Hit> hits_;
};

}  // namespace simile::engine
