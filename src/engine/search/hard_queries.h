#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "engine/search/refinement.h"
#include "engine/search/search_workspace.h"
#include "engine/search/task_progress.h"
#include "simile/clock.h"

namespace simile::engine {

// The queries under way of hard tasks of one snapshot. They share searches, round by round, and in
// between do their own work a piece at a time, the oldest query first: if they took turns, each
// that came would delay all before it, and under overload none would be answered by its deadline.
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
  // What a search and the other work of a slice took.
  struct SearchTime {
    std::uint32_t searches = 0;
    Clock::Duration duration{};
  };
  struct Report {
    std::vector<SearchTime> searches;  // that succeeded
    Clock::Duration work{};            // beside searches
    // Of those pieces of work that mostly formed scores: how many products, and how long.
    std::uint64_t products = 0;
    Clock::Duration scoring{};
    std::uint32_t query_count = 0;  // that one search answered, or 1 that was worked on
    FallbackBackend fallback;       // that answered the first search

    std::uint64_t searches_in_all() const;
  };

  // Runs the tasks' queries for a while: what has begun goes on before others are searched for, so
  // that each comes to its end whatever else comes. A query that fails fails its task. A task that
  // has ended must not come again.
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
  bool RunPiece(Report& report);  // whether any query needed one
  // Calls work() and notes its error in the task, or its result when the query has its answer.
  template <class Work>
  void Advance(Open& open, Work work);
  bool Check(Open& open) const;
  void EraseEnded();

  const SnapshotPtr snapshot_;
  SearchWorkspace& workspace_;
  const Clock& clock_;
  const std::size_t open_max_;
  std::list<Open> open_;  // oldest first
};

}  // namespace simile::engine
