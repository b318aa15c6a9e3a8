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

// Chooses k of a query's candidates by Diversity's rule, some at a time. Borrows the snapshot.
class Diversifier {
 public:
  //   candidates  best first
  // Throws std::bad_alloc.
  Diversifier(std::span<const Hit> candidates, std::size_t k, float lambda,
              const Snapshot& snapshot);

  bool done() const { return chosen_.size() == wanted_; }
  // Chooses the next ones: some milliseconds of work.
  //   execution  what comparing costs is added to it: each comparison counts as a row rescored
  // Errors: the backend's. REQUIRES: not done. Cost: a canonical score for each candidate and each
  // row chosen.
  absl::Status ChooseSome(SegmentSearch& search, Execution& execution);
  // Those chosen, in the order chosen; all candidates when there are no more than k.
  std::vector<Hit> TakeHits() { return std::move(chosen_); }

 private:
  struct Candidate {
    Hit hit;
    float nearest_chosen;  // its greatest similarity to a row that is chosen
    bool chosen = false;
  };
  double Relevance(const Candidate& candidate) const;
  void Choose();
  absl::Status CompareWithNewest(SegmentSearch& search, Execution& execution);

  const Snapshot& snapshot_;
  const double lambda_;
  std::size_t wanted_ = 0;
  std::vector<Candidate> candidates_;  // best first
  // Score takes rows in ascending order.
  std::vector<std::size_t> by_row_;  // [candidates] indexes
  std::vector<Row> rows_;            // [candidates] ascending
  std::vector<float> similarities_;  // [candidates] to the newest, in the order of rows_
  std::vector<Hit> chosen_;
};

// Answers one query that a single search does not, in as many searches and pieces of work as it
// takes. Borrows what it is made from.
class Refinement {
 public:
  //   vectors  [query.vector_count, dim]  the query's own
  // Throws std::bad_alloc, as do all methods.
  Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
             SegmentSearch& search);

  // What comes next: AddSearches and then ReadResults, Work, or reading result().
  Step next() const;
  void AddSearches(SearchBatchBuilder& builder) { ranking_.AddSearches(builder); }
  // Reads the results of those searches.
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
  // The answer is found; rows may be left to explain.
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

// The queries under way of hard tasks of one snapshot. The oldest decides what comes next: a piece
// of its own work, or a search, which all others that need one share. If they took turns, each that
// came would delay all before it, and under overload none would be answered by its deadline. And
// only the oldest has masks of its own, which take a bit a row.
// Used by the thread that leads; borrows its workspace.
class HardQueries {
 public:
  HardQueries(SnapshotPtr snapshot, SearchWorkspace& workspace, const Clock& clock);

  // How much a slice may do.
  struct Budget {
    Clock::TimePoint end;      // nothing is begun after it
    Clock::Duration length{};  // of the whole slice
    // That a search of this length makes; never less than a query's.
    std::uint32_t searches_max = 1;
    const std::atomic<bool>& yield;  // whether to end after the piece under way
  };
  struct SearchTime {
    std::uint32_t searches = 0;
    std::uint32_t list_max = 0;  // the longest of their lists
    Clock::Duration duration{};
  };
  // What a slice took. What each of its tasks got is in their progress.
  struct Report {
    std::vector<SearchTime> searches;  // that succeeded
    // Of those pieces of work that mostly formed scores: how many products, and how long.
    std::uint64_t products = 0;
    Clock::Duration scoring{};
    std::uint32_t query_count = 0;  // that one search answered, or 1 that was worked on
    FallbackBackend fallback;       // that answered the first search
  };

  // Runs the tasks' queries for a while, the oldest first, so that each comes to its end whatever
  // else comes. A query that fails fails its task. A task that has ended must not come again.
  //   tasks   oldest first; all of the snapshot, have begun and have not ended; those of earlier
  //           slices that are not among them must have been dropped
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
  // Calls work() and notes its error in the task, or its result when the query has its answer.
  template <class Work>
  void Advance(Open& open, Work work);
  bool Check(Open& open) const;  // whether its task goes on
  void EraseEnded();

  const SnapshotPtr snapshot_;
  SearchWorkspace& workspace_;
  const Clock& clock_;
  std::list<Open> open_;  // oldest first
};

}  // namespace simile::engine
