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
