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

// The next step of a query that needs more than one search.
enum class Step : std::uint8_t {
  kSearch,  // a search, shared with other queries
  kWork,    // a piece of the query's own work
  kDone,
};

// Finds the exact best rows for one query, in rounds. A query with one vector needs one round; a
// query with several vectors usually needs one. A round is a search, usually followed by pieces of
// work. With several vectors, each probe's list of best rows proposes candidates, and the
// candidates get their scores. A bound on the score of every other row then proves that the k best
// are among the candidates. If the proof fails, the next round asks for longer lists; in the end
// every row is scored. Borrows its arguments.
class Ranking {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   execution  the cost of ranking is added to it
  // Throws std::bad_alloc, as do all methods.
  Ranking(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
          SegmentSearch& search, Execution& execution);

  // The k of each search in the first round of a ranking of the best k rows.
  static std::uint32_t FirstListLength(Scoring scoring, std::uint32_t k);

  // Starts a ranking of the best k rows that pass mask (null: all), exclusions and threshold.
  //   mask  borrowed until the ranking is done
  void Begin(std::uint32_t k, const RowMask* mask);
  // As Begin, without a search: scores every row that passes.
  void BeginWithoutSearch(std::size_t k, const RowMask* mask);
  // Scores every row that passes and offers it instead of ranking. REQUIRES: the query has no
  // order.
  void BeginOffering(const RowMask* mask, RowScorer::Offer offer);

  // The next step: AddSearches and then ReadResults; or Work; or reading hits().
  Step next() const { return next_; }
  void AddSearches(SearchBatchBuilder& builder);
  // Reads the results of the searches that AddSearches added.
  void ReadResults(const SearchResult& result);
  // Does one piece of work. Errors: the backend's.
  absl::Status Work();

  // Best first; fewer than k when fewer rows pass.
  const std::vector<Hit>& hits() const { return hits_; }
  // For a query with an order: how many of hits() the order lists (OrderedRows).
  std::size_t listed_count() const { return listed_count_; }
  // Moves hits() out, which is then empty until the next Begin.
  std::vector<Hit> TakeHits() { return std::move(hits_); }

 private:
  void BeginRound();
  void MakeProbes(MatrixView vectors, const Snapshot& snapshot);
  std::size_t probe_count() const { return probes_.size() / padded_dim_; }
  std::vector<Row> CollectCandidates(const SearchResult& result) const;
  float CeilingOfOthers(const SearchResult& result) const;
  // Whether the bound proves that the k best rows were all proposed.
  bool IsProven() const;
  void LengthenLists();

  const ResolvedQuery& query_;
  const std::size_t row_count_;
  const std::size_t padded_dim_;
  Execution& execution_;
  RowScorer scorer_;
  std::optional<OrderedRows> ordered_;  // of a query with an order
  std::size_t listed_count_ = 0;
  std::vector<float> probes_;        // [probes, padded_dim], searched for; empty: score all rows
  certificate::SumBound sum_bound_;  // for Scoring::kSumScores

  std::size_t k_ = 0;
  const RowMask* mask_ = nullptr;
  Step next_ = Step::kDone;
  std::uint32_t list_k_ = 0;      // hits of each probe; 0: every row is scored instead
  std::size_t rounds_ = 0;        // begun so far
  std::size_t first_search_ = 0;  // of the probes, in the round's batch
  // An upper bound of the score of every row that the last search did not propose; nothing when it
  // proposed every row that passes.
  std::optional<float> ceiling_of_others_;
  std::vector<Hit> hits_;
};

}  // namespace simile::engine
