#include "engine/search/hard_queries.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include "engine/search/call_context.h"

namespace simile::engine {
namespace {

// Masks that queries under way have made for themselves; each may bring one.
constexpr std::size_t kMaskBytesMax = 128U << 20;
constexpr std::size_t kOpenMax = 1'024;

std::size_t OpenMax(const Snapshot& snapshot) {
  const std::size_t mask_bytes = snapshot.row_count() / 8 + 1;
  return std::clamp<std::size_t>(kMaskBytesMax / mask_bytes, 1, kOpenMax);
}

std::uint64_t RowsScored(const Refinement& refinement) {
  const QueryCost& cost = refinement.result().execution.cost;
  return cost.rows_rescored + cost.rows_scanned;
}

}  // namespace

HardQueries::HardQueries(SnapshotPtr snapshot, SearchWorkspace& workspace, const Clock& clock)
    : snapshot_(std::move(snapshot)),
      workspace_(workspace),
      clock_(clock),
      open_max_(OpenMax(*snapshot_)) {}

void HardQueries::RunSlice(std::span<TaskProgress* const> tasks, const Budget& budget,
                           Report& report) {
  report = {};
  std::uint32_t searches_max = budget.searches_max;
  for (;;) {
    OpenQueries(tasks);
    RunSearch(searches_max, report);
    RunPieces(budget, report);
    const Clock::TimePoint now = clock_.Now();
    if (open_.empty() || now >= budget.end || budget.yield) break;
    // The next search is as much smaller as the slice is nearer its end.
    const double left =
        static_cast<double>((budget.end - now).count()) /
        static_cast<double>(std::max<Clock::Duration::rep>(1, budget.length.count()));
    searches_max = std::max(1U, static_cast<std::uint32_t>(left * budget.searches_max));
  }
}

void HardQueries::Drop(const TaskProgress& task) {
  open_.remove_if([&](const Open& open) { return open.task == &task; });
}

void HardQueries::OpenQueries(std::span<TaskProgress* const> tasks) {
  for (TaskProgress* const task : tasks) {
    while (!task->ended() && task->next_query < task->task->queries.size()) {
      if (open_.size() >= open_max_) return;
      OpenNext(*task);
    }
  }
}

void HardQueries::OpenNext(TaskProgress& progress) {
  const ResolvedQuery& query = progress.task->queries[progress.next_query];
  const MatrixView vectors =
      progress.task->vectors.view().Slice(progress.next_vector, query.vector_count);
  try {
    open_.push_back({&progress, progress.next_query,
                     std::make_unique<Refinement>(query, vectors, *snapshot_, workspace_.search)});
  } catch (const std::bad_alloc&) {
    progress.status = NoMemoryFor("answer");
    return Drop(progress);
  }
  ++progress.next_query;
  progress.next_vector += query.vector_count;
}

// One search for all queries that need one next, as far as it may be large.
void HardQueries::RunSearch(std::uint32_t searches_max, Report& report) {
  SearchBatchBuilder& builder = workspace_.builder;
  builder.Clear(snapshot_->dim());
  std::uint32_t query_count = 0;
  for (Open& open : open_) {
    if (builder.size() >= searches_max) break;
    if (open.refinement->next() != Step::kSearch || !Check(open)) continue;
    open.in_search = true;
    ++query_count;
    Advance(open, [&] {
      open.refinement->AddSearches(builder);
      return absl::OkStatus();
    });
  }
  if (query_count > 0 && !builder.empty()) {
    const Clock::TimePoint began = clock_.Now();
    absl::Status status;
    try {
      status = workspace_.search.Run(snapshot_->segments, builder.batch(), workspace_.result);
    } catch (const std::bad_alloc&) {
      status = NoMemoryFor("batch");
    }
    if (report.searches.empty()) report.fallback = workspace_.result.fallback();
    report.searches.push_back({static_cast<std::uint32_t>(builder.size()), clock_.Now() - began});
    report.query_count = std::max(report.query_count, query_count);
    for (Open& open : open_) {
      if (!std::exchange(open.in_search, false) || !open.task->status.ok()) continue;
      open.task->batch_size = std::max(open.task->batch_size, query_count);
      Advance(open, [&] {
        if (status.ok()) open.refinement->ReadResults(workspace_.result);
        return status;
      });
    }
  }
  EraseEnded();
}

void HardQueries::RunPieces(const Budget& budget, Report& report) {
  const Clock::TimePoint began = clock_.Now();
  bool worked = false;  // each slice gets something done, however soon it must end
  for (;;) {
    const auto open = std::ranges::find_if(
        open_, [](const Open& each) { return each.refinement->next() == Step::kWork; });
    if (open == open_.end() || clock_.Now() >= budget.end || (worked && budget.yield)) break;
    worked = true;
    if (Check(*open)) {
      Advance(*open, [&] {
        const std::uint64_t before = RowsScored(*open->refinement);
        absl::Status status = open->refinement->Work();
        report.rows_scored += RowsScored(*open->refinement) - before;
        return status;
      });
    }
    EraseEnded();
  }
  report.work += clock_.Now() - began;
}

template <class Work>
void HardQueries::Advance(Open& open, Work work) {
  absl::Status status;
  try {
    status = work();
  } catch (const std::bad_alloc&) {
    status = NoMemoryFor("answer");
  }
  TaskProgress& task = *open.task;
  if (!status.ok()) {
    task.status = status;
  } else if (open.refinement->next() == Step::kDone) {
    task.results[open.query] = std::move(open.refinement->result());
    ++task.answered;
    open.refinement.reset();
  }
}

bool HardQueries::Check(Open& open) const {
  if (!open.task->status.ok()) return false;
  open.task->status = CallContext(*open.task->task, clock_).Check();
  return open.task->status.ok();
}

// Those that have their answer, and those whose task failed at another.
void HardQueries::EraseEnded() {
  open_.remove_if(
      [](const Open& open) { return open.refinement == nullptr || !open.task->status.ok(); });
}

}  // namespace simile::engine
