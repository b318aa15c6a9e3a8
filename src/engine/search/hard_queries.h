#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "engine/search/execution.h"
#include "engine/search/group_hits.h"
#include "engine/search/ranking.h"
#include "engine/search/resolved_query.h"
#include "engine/search/row_places.h"
#include "engine/search/row_scorer.h"
#include "engine/search/search_task.h"
#include "engine/search/search_workspace.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"
#include "simile/clock.h"

namespace simile::engine {

// Chooses k of a query's candidates by Diversity's rule, a few at a time. Borrows the snapshot.
class Diversifier {
 public:
  //   candidates  best first
  // Throws std::bad_alloc.
  Diversifier(std::span<const Hit> candidates, std::size_t k, float lambda,
              const Snapshot& snapshot);

  bool done() const { return chosen_.size() == wanted_; }
  // Chooses the next rows: some milliseconds of work.
  //   execution  what comparing costs is added to it: each comparison counts as a row rescored
  // Errors: the backend's. REQUIRES: not done. Cost: a canonical score for each pair of a candidate
  // and a chosen row.
  absl::Status ChooseSome(SegmentSearch& search, Execution& execution);
  // The chosen rows, in the order of the choice; all candidates when there are at most k.
  std::vector<Hit> TakeHits() { return std::move(chosen_); }

 private:
  struct Candidate {
    Hit hit;
    float nearest_chosen;  // its greatest similarity to a chosen row
    bool chosen = false;
  };
  double Relevance(const Candidate& candidate) const;
  void Choose();
  absl::Status CompareWithNewest(SegmentSearch& search, Execution& execution);

  const Snapshot& snapshot_;
  const double lambda_;
  std::size_t wanted_ = 0;
  std::vector<Candidate> candidates_;  // best first
  // Score requires rows in ascending order.
  std::vector<std::size_t> by_row_;  // [candidates] indexes
  std::vector<Row> rows_;            // [candidates] ascending
  std::vector<float> similarities_;  // [candidates] to the row chosen last, in the order of rows_
  std::vector<Hit> chosen_;
};

// Answers one query that needs more than a single search, in several searches and pieces of work.
// Borrows its arguments.
class Refinement {
 public:
  //   vectors  [query.vector_count, dim]  the query's own
  // Throws std::bad_alloc, as do all methods.
  Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
             SegmentSearch& search);

  // The next step: AddSearches and then ReadResults; or Work; or reading result().
  Step next() const;
  void AddSearches(SearchBatchBuilder& builder) { ranking_.AddSearches(builder); }
  // Reads the results of the searches that AddSearches added.
  void ReadResults(const SearchResult& result);
  // One piece, some milliseconds. Errors: the backend's.
  absl::Status Work();

  QueryResult& result() { return result_; }
  const QueryResult& result() const { return result_; }

 private:
  enum class Stage : std::uint8_t { kRanking, kGrouping, kDiversifying, kPlacing, kDone };

  void BeginRanking();
  void FinishRanking();
  void WorkOnGroups();
  // Called when the answer is found. Rows may be left to explain.
  void FinishAnswer();

  const ResolvedQuery& query_;
  const MatrixView vectors_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  QueryResult result_;  // its execution is the sum so far
  Ranking ranking_;
  std::optional<GroupHits> groups_;
  std::optional<Diversifier> diversifier_;
  std::optional<PlaceFinder> places_;
  Stage stage_ = Stage::kRanking;
};

// The queries under way, of hard tasks of one snapshot. The oldest query decides the next step: a
// piece of its own work, or a search that is shared by all queries that need one. If queries took
// turns, each new query would delay all earlier ones, and under overload none would meet its
// deadline. Also, only the oldest query has masks of its own, which take a bit a row.
// Used by the thread that leads; borrows its workspace.
class HardQueries {
 public:
  HardQueries(SnapshotPtr snapshot, SearchWorkspace& workspace, const Clock& clock);

  // The bounds of the work of a slice.
  struct Budget {
    Clock::TimePoint end;      // no piece begins after this time
    Clock::Duration length{};  // of the whole slice
    // The searches that take about this length together; at least the searches of one query.
    std::uint32_t searches_max = 1;
    const std::atomic<bool>& yield;  // when set, the slice ends after the piece under way
  };
  struct SearchTime {
    std::uint32_t searches = 0;
    std::uint32_t list_max = 0;  // the length of their longest list
    Clock::Duration duration{};
  };
  // What a slice did and how long it took. Results are in the progress of each task.
  struct Report {
    std::vector<SearchTime> searches;  // searches that succeeded
    // Of the pieces of work that mostly formed scores: the products, and the time.
    std::uint64_t products = 0;
    Clock::Duration scoring{};
    std::uint32_t query_count = 0;  // queries in one search, or 1 that was worked on
    FallbackBackend fallback;       // answered the first search, if any
  };

  // Runs the tasks' queries for a slice, the oldest first, so that new queries never delay an old
  // query without end. When a query fails, its task fails. A task that has ended must not be passed
  // again.
  //   tasks   oldest first; all of one snapshot, begun and not ended. Tasks of earlier slices that
  //           are missing here must have been dropped
  //   report  overwritten
  void RunSlice(std::span<TaskProgress* const> tasks, const Budget& budget, Report& report);
  // Forgets the queries of a task that is given up.
  void Drop(const TaskProgress& task);
  bool empty() const { return open_.empty(); }

 private:
  struct Open {
    TaskProgress* task = nullptr;
    std::size_t query = 0;  // of the task
    std::unique_ptr<Refinement> refinement;
    bool in_search = false;
  };

  void OpenQueries(std::span<TaskProgress* const> tasks);
  void OpenNext(TaskProgress& task);
  void RunSearch(std::uint32_t searches_max, Report& report);
  void RunPiece(Open& open, Report& report);
  // Calls work(). Writes its error to the task, or the query's result when the query is answered.
  template <class Work>
  void Advance(Open& open, Work work);
  bool Check(Open& open) const;  // whether its task continues
  void EraseEnded();

  const SnapshotPtr snapshot_;
  SearchWorkspace& workspace_;
  const Clock& clock_;
  std::list<Open> open_;  // oldest first
};

}  // namespace simile::engine
