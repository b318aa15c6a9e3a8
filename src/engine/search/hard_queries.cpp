#include "engine/search/hard_queries.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "base/error_detail.h"
#include "engine/search/call_context.h"
#include "engine/search/row_scorer.h"

namespace simile::engine {
namespace {

// The most queries under way.
constexpr std::size_t kOpenMax = 1'024;

// In smaller pieces most of the time is not spent on scores.
constexpr std::uint64_t kProductsMeasuredMin = kProductsOfPiece / 4;

// The nearer the end of the slice, the smaller the search. A search for less than this part of the
// queries is left to the next slice, because small searches cost nearly as much as large ones.
constexpr double kLeastPart = 0.25;

double PartLeft(const HardQueries::Budget& budget, Clock::TimePoint now) {
  const double left = static_cast<double>((budget.end - now).count()) /
                      static_cast<double>(std::max<Clock::Duration::rep>(1, budget.length.count()));
  return std::clamp(left, 0.0, 1.0);
}

}  // namespace

Diversifier::Diversifier(std::span<const Hit> candidates, std::size_t k, float lambda,
                         const Snapshot& snapshot)
    : snapshot_(snapshot), lambda_(lambda), wanted_(std::min(k, candidates.size())) {
  chosen_.reserve(wanted_);
  candidates_.reserve(candidates.size());
  for (const Hit& hit : candidates) {
    candidates_.push_back({hit, -std::numeric_limits<float>::infinity()});
  }
  by_row_.resize(candidates.size());
  std::iota(by_row_.begin(), by_row_.end(), std::size_t{0});
  std::ranges::sort(by_row_, {}, [&](std::size_t i) { return candidates_[i].hit.row; });
  rows_.reserve(by_row_.size());
  for (const std::size_t i : by_row_) rows_.push_back(candidates_[i].hit.row);
  similarities_.resize(rows_.size());
}

absl::Status Diversifier::ChooseSome(SegmentSearch& search, Execution& execution) {
  assert(!done());
  const std::size_t rounds =
      std::max<std::size_t>(1, RowsOfPiece(snapshot_.dim(), 1) / candidates_.size());
  for (std::size_t round = 0; round < rounds && !done(); ++round) {
    if (!chosen_.empty()) {
      if (absl::Status status = CompareWithNewest(search, execution); !status.ok()) return status;
    }
    Choose();
  }
  return absl::OkStatus();
}

double Diversifier::Relevance(const Candidate& candidate) const {
  return lambda_ * candidate.hit.score - (1.0 - lambda_) * candidate.nearest_chosen;
}

// Before the first choice there is no diversity term, so the row with the best score is chosen.
void Diversifier::Choose() {
  Candidate* best = nullptr;
  for (Candidate& candidate : candidates_) {
    if (candidate.chosen) continue;
    if (best == nullptr || (!chosen_.empty() && Relevance(candidate) > Relevance(*best))) {
      best = &candidate;
    }
  }
  best->chosen = true;
  chosen_.push_back(best->hit);
}

absl::Status Diversifier::CompareWithNewest(SegmentSearch& search, Execution& execution) {
  const MatrixView newest = snapshot_.dataset->vectors.view().Slice(chosen_.back().row, 1);
  const absl::StatusOr<FallbackBackend> fallback =
      search.Score(snapshot_.segments, newest, rows_, similarities_);
  if (!fallback.ok()) return fallback.status();
  execution.AddFallback(*fallback);
  execution.cost.rows_rescored += rows_.size();
  for (std::size_t i = 0; i < by_row_.size(); ++i) {
    float& nearest = candidates_[by_row_[i]].nearest_chosen;
    nearest = std::max(nearest, similarities_[i]);
  }
  return absl::OkStatus();
}

Refinement::Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                       SegmentSearch& search)
    : query_(query),
      vectors_(vectors),
      snapshot_(snapshot),
      search_(search),
      ranking_(query, vectors, snapshot, search, result_.execution) {
  if (query.grouping) groups_.emplace(query, snapshot);
  BeginRanking();
}

Step Refinement::next() const {
  switch (stage_) {
    case Stage::kRanking:
      return ranking_.next();
    case Stage::kGrouping:
    case Stage::kDiversifying:
    case Stage::kPlacing:
      return Step::kWork;
    case Stage::kDone:
      break;
  }
  return Step::kDone;
}

void Refinement::BeginRanking() {
  if (groups_) {
    ranking_.Begin(groups_->rows_wanted(), groups_->mask());
  } else {
    ranking_.Begin(query_.diversity ? query_.diversity->candidates : query_.k, query_.mask.get());
  }
}

void Refinement::ReadResults(const SearchResult& result) {
  ranking_.ReadResults(result);
  if (ranking_.next() == Step::kDone) FinishRanking();
}

absl::Status Refinement::Work() {
  if (stage_ == Stage::kDiversifying) {
    if (absl::Status status = diversifier_->ChooseSome(search_, result_.execution); !status.ok()) {
      return status;
    }
    if (!diversifier_->done()) return absl::OkStatus();
    result_.hits = QueryHits(diversifier_->TakeHits());
    FinishAnswer();
    return absl::OkStatus();
  }
  if (stage_ == Stage::kPlacing) {
    if (absl::Status status = places_->Work(); !status.ok()) return status;
    if (!places_->done()) return absl::OkStatus();
    result_.places = places_->TakePlaces();
    stage_ = Stage::kDone;
    return absl::OkStatus();
  }
  if (stage_ == Stage::kGrouping) {
    WorkOnGroups();
    return absl::OkStatus();
  }
  if (absl::Status status = ranking_.Work(); !status.ok()) return status;
  if (ranking_.next() == Step::kDone) FinishRanking();
  return absl::OkStatus();
}

void Refinement::FinishRanking() {
  if (groups_) {
    stage_ = Stage::kGrouping;
    return;
  }
  if (query_.diversity && !ranking_.hits().empty()) {
    diversifier_.emplace(ranking_.hits(), query_.k, query_.diversity->lambda, snapshot_);
    stage_ = Stage::kDiversifying;
    return;
  }
  if (query_.order) result_.listed_count = ranking_.listed_count();
  result_.hits = QueryHits(ranking_.TakeHits());
  FinishAnswer();
}

void Refinement::FinishAnswer() {
  stage_ = Stage::kDone;
  if (query_.explained.empty()) return;
  places_.emplace(query_, vectors_, snapshot_, result_.hits.span(), search_, result_.execution);
  stage_ = Stage::kPlacing;
}

// Does one piece of the work.
void Refinement::WorkOnGroups() {
  switch (groups_->Work(ranking_.hits())) {
    case GroupHits::Next::kWork:
      return;
    case GroupHits::Next::kRanking:
      BeginRanking();
      break;
    case GroupHits::Next::kRows: {
      const RowMask* const rows = groups_->mask();
      if (query_.order) {
        ranking_.BeginWithoutSearch(rows->AllowedCount(), rows);
      } else {
        ranking_.BeginOffering(rows, [this](RankKey key) { groups_->Offer(key); });
      }
      break;
    }
    case GroupHits::Next::kDone:
      result_.groups = groups_->TakeGroups();
      return FinishAnswer();
  }
  stage_ = Stage::kRanking;
}

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
  bool first = true;  // each slice does at least one piece, however soon it must end
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

// Runs one search for all queries that need one next, up to the size that the budget allows.
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
    if (status.ok()) {  // the time of a failed search is not typical
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

// Erases queries that have their answer, and queries whose task failed.
void HardQueries::EraseEnded() {
  open_.remove_if(
      [](const Open& open) { return open.refinement == nullptr || !open.task->status.ok(); });
}

}  // namespace simile::engine
