#include "engine/search/hard_queries.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error_detail.h"
#include "engine/search/call_context.h"
#include "engine/search/piece_of_work.h"

namespace simile::engine {
namespace {

// Queries under way.
constexpr std::size_t kOpenMax = 1'024;

// In smaller pieces other things than scores take most of the time.
constexpr std::uint64_t kProductsMeasuredMin = kProductsOfPiece / 4;

// A search is as much smaller as the slice is nearer its end. One for less than this part of the
// queries is left to the next slice: small searches cost nearly as much as large ones.
constexpr double kLeastPart = 0.25;

double PartLeft(const HardQueries::Budget& budget, Clock::TimePoint now) {
  const double left = static_cast<double>((budget.end - now).count()) /
                      static_cast<double>(std::max<Clock::Duration::rep>(1, budget.length.count()));
  return std::clamp(left, 0.0, 1.0);
}

}  // namespace

HardQueries::HardQueries(SnapshotPtr snapshot, SearchWorkspace& workspace, const Clock& clock)
    : snapshot_(std::move(snapshot)), workspace_(workspace), clock_(clock) {}

void HardQueries::RunSlice(std::span<TaskProgress* const> tasks, const Budget& budget,
                           Report& report) {
  report = {};
  for (TaskProgress* const task : tasks) {
    task->searches_in_slice = 0;
    task->work_in_slice = {};
  }
  OpenQueries(tasks);
  bool first = true;  // each slice gets something done, however soon it must end
  while (!open_.empty()) {
    const double left = PartLeft(budget, clock_.Now());
    if (!first && (left <= 0 || budget.yield)) return;
    if (open_.front().refinement->next() == Step::kWork) {
      RunPiece(open_.front(), report);
    } else {
      if (!first && left < kLeastPart) return;
      RunSearch(static_cast<std::uint32_t>(std::max(1.0, left * budget.searches_max)), report);
    }
    first = false;
    OpenQueries(tasks);
  }
}

void HardQueries::Drop(const TaskProgress& task) {
  open_.remove_if([&](const Open& open) { return open.task == &task; });
}

void HardQueries::OpenQueries(std::span<TaskProgress* const> tasks) {
  for (TaskProgress* const task : tasks) {
    while (!task->ended() && task->next_query < task->task->queries.size()) {
      if (open_.size() >= kOpenMax) return;
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
    progress.status = NoMemoryForAnswer();
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
    const std::size_t before = builder.size();
    Advance(open, [&] {
      open.refinement->AddSearches(builder);
      return absl::OkStatus();
    });
    open.task->searches_in_slice += static_cast<std::uint32_t>(builder.size() - before);
  }
  if (!builder.empty()) {
    const Clock::TimePoint began = clock_.Now();
    absl::Status status;
    try {
      status = workspace_.search.Run(snapshot_->segments, builder.batch(), workspace_.result);
    } catch (const std::bad_alloc&) {
      status = NoMemoryForBatch();
    }
    if (status.ok()) {  // what failed says nothing of what searches take
      if (report.searches.empty()) report.fallback = workspace_.result.fallback();
      report.searches.push_back({static_cast<std::uint32_t>(builder.size()), builder.longest_list(),
                                 clock_.Now() - began});
    }
    report.query_count = std::max(report.query_count, query_count);
    for (Open& open : open_) {
      if (!std::exchange(open.in_search, false) || !open.task->status.ok()) continue;
      open.task->batch_size = std::max(open.task->batch_size, query_count);
      Advance(open, [&] {
        if (status.ok()) open.refinement->ReadResults(workspace_.result);
        return status;
      });
    }
    workspace_.result.Release();
  }
  EraseEnded();
}

void HardQueries::RunPiece(Open& open, Report& report) {
  if (Check(open)) {
    const Clock::TimePoint began = clock_.Now();
    const std::uint64_t products_before = workspace_.search.products();
    Advance(open, [&] { return open.refinement->Work(); });
    const Clock::Duration duration = clock_.Now() - began;
    const std::uint64_t products = workspace_.search.products() - products_before;
    open.task->work_in_slice += duration;
    if (products >= kProductsMeasuredMin) {
      report.products += products;
      report.scoring += duration;
    }
    report.query_count = std::max(report.query_count, 1U);
  }
  EraseEnded();
}

template <class Work>
void HardQueries::Advance(Open& open, Work work) {
  absl::Status status;
  try {
    status = work();
  } catch (const std::bad_alloc&) {
    status = NoMemoryForAnswer();
  }
  TaskProgress& task = *open.task;
  task.in_slice = true;
  if (!status.ok()) {
    task.status = status;
  } else if (open.refinement->next() == Step::kDone) {
    task.results[open.query] = std::move(open.refinement->result());
    ++task.answered;
    open.refinement.reset();
  }
}

bool HardQueries::Check(Open& open) const {
  absl::Status& status = open.task->status;
  if (!status.ok()) return false;
  status = base::OrOutOfMemory([&] { return CallContext(*open.task->task, clock_).Check(); });
  return status.ok();
}

// Those that have their answer, and those whose task failed at another.
void HardQueries::EraseEnded() {
  open_.remove_if(
      [](const Open& open) { return open.refinement == nullptr || !open.task->status.ok(); });
}

}  // namespace simile::engine
