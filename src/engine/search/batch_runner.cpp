#include "engine/search/batch_runner.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"

namespace simile::engine {
namespace {

// Masks that the queries of one round have made for themselves.
constexpr std::size_t kMaskBytesOfARound = 128U << 20;

QuerySpec SpecOf(const ResolvedQuery& query) {
  return {query.k, query.mask.get(), query.excluded_rows, query.score_threshold};
}

bool AllPlain(const SearchTask& task) {
  return std::ranges::all_of(task.queries, &ResolvedQuery::IsPlain);
}

absl::Status NoMemory(std::string_view what) {
  return base::Error(base::ErrorReason::kOutOfMemory,
                     fmt::format("no memory for the {}; ask for fewer hits at a time", what));
}

// Calls visit(index of the query, the query, its vectors) for each of a task's.
template <class Visit>
void ForEachQuery(const SearchTask& task, Visit visit) {
  std::size_t first_vector = 0;
  for (std::size_t i = 0; i < task.queries.size(); ++i) {
    const ResolvedQuery& query = task.queries[i];
    visit(i, query, task.vectors.view().Slice(first_vector, query.vector_count));
    first_vector += query.vector_count;
  }
}

}  // namespace

absl::Status BatchRunner::Run(std::span<const std::unique_ptr<SearchTask>> tasks,
                              BatchAnswers& answers, const OnCompleted& on_completed) {
  assert(!tasks.empty());
  absl::Status status;
  try {
    status = RunRounds(tasks, answers, on_completed);
  } catch (const std::bad_alloc&) {
    // A batch of large k can ask for much; the server outlives it.
    status = NoMemory("batch");
  }
  pending_.clear();  // they borrow the tasks
  return status;
}

absl::Status BatchRunner::RunRounds(std::span<const std::unique_ptr<SearchTask>> tasks,
                                    BatchAnswers& answers, const OnCompleted& on_completed) {
  const SnapshotPtr snapshot = tasks.front()->snapshot;
  answers.fallback = nullptr;
  if (absl::Status status = RunFirstRound(tasks); !status.ok()) return status;
  answers.fallback = result_.fallback();
  answers.tasks.clear();
  for (const auto& task : tasks) {
    answers.tasks.emplace_back(std::vector<QueryResult>(task->queries.size()));
  }
  ReadPlainResults(tasks, answers);
  notified_.assign(tasks.size(), 0);
  for (;;) {
    ReadPendingResults(answers);
    if (pending_.empty()) return absl::OkStatus();
    NotifyCompleted(on_completed);
    if (absl::Status status = RunNextRound(*snapshot); !status.ok()) return status;
  }
}

absl::Status BatchRunner::RunFirstRound(std::span<const std::unique_ptr<SearchTask>> tasks) {
  const Snapshot& snapshot = *tasks.front()->snapshot;
  if (tasks.size() == 1 && AllPlain(*tasks.front())) {
    const SearchTask& task = *tasks.front();
    specs_.clear();
    for (const ResolvedQuery& query : task.queries) specs_.push_back(SpecOf(query));
    return search_.Run(snapshot.segments, {task.vectors.view(), specs_}, result_);
  }
  builder_.Clear(snapshot.dim());
  for (const auto& task : tasks) {
    ForEachQuery(*task, [&](std::size_t, const ResolvedQuery& query, MatrixView vectors) {
      if (query.IsPlain()) builder_.Add(vectors.data(), SpecOf(query));
    });
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const CallContext context(*tasks[i], clock_);
    ForEachQuery(*tasks[i], [&](std::size_t index, const ResolvedQuery& query, MatrixView vectors) {
      if (query.IsPlain()) return;
      auto refinement = std::make_unique<Refinement>(query, vectors, snapshot, search_, context);
      refinement->AddSearches(builder_);
      pending_.push_back({i, index, std::move(refinement), true});
    });
  }
  return RunBatch(snapshot);
}

absl::Status BatchRunner::RunNextRound(const Snapshot& snapshot) {
  // Each may bring a mask of its own.
  const std::size_t mask_bytes = snapshot.row_count() / 8 + 1;
  const std::size_t count =
      std::min(pending_.size(), std::max<std::size_t>(1, kMaskBytesOfARound / mask_bytes));
  builder_.Clear(snapshot.dim());
  for (Pending& pending : std::span(pending_).first(count)) {
    pending.refinement->AddSearches(builder_);
    pending.in_round = true;
  }
  return RunBatch(snapshot);
}

absl::Status BatchRunner::RunBatch(const Snapshot& snapshot) {
  if (!builder_.empty()) return search_.Run(snapshot.segments, builder_.batch(), result_);
  result_.Reset(0, 0);
  return absl::OkStatus();
}

void BatchRunner::ReadPlainResults(std::span<const std::unique_ptr<SearchTask>> tasks,
                                   BatchAnswers& answers) {
  std::size_t search = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (std::size_t index = 0; index < tasks[i]->queries.size(); ++index) {
      if (!tasks[i]->queries[index].IsPlain()) continue;
      QueryResult& query_result = (*answers.tasks[i])[index];
      const std::span<const Hit> hits = result_.Hits(search);
      query_result.hits.assign(hits.begin(), hits.end());
      query_result.execution.AddSearch(result_, search);
      ++search;
    }
  }
}

void BatchRunner::ReadPendingResults(BatchAnswers& answers) {
  for (Pending& pending : pending_) {
    auto& answer = answers.tasks[pending.task];
    // A task that failed at another of its queries needs none of the rest.
    if (pending.in_round || !answer.ok()) ReadPendingResult(pending, answer);
    pending.in_round = false;
  }
  std::erase_if(pending_, [](const Pending& pending) { return pending.done; });
}

// An error here fails this task only, not the batch.
void BatchRunner::ReadPendingResult(Pending& pending,
                                    absl::StatusOr<std::vector<QueryResult>>& answer) {
  pending.done = true;
  if (!answer.ok()) return;
  absl::StatusOr<bool> complete = false;
  try {
    complete = pending.refinement->ReadResults(result_);
  } catch (const std::bad_alloc&) {
    complete = NoMemory("answer");
  }
  if (!complete.ok()) {
    answer = complete.status();
  } else if (*complete) {
    (*answer)[pending.query] = std::move(pending.refinement->result());
  } else {
    pending.done = false;
  }
  if (pending.done) pending.refinement.reset();  // frees its memory while others continue
}

void BatchRunner::NotifyCompleted(const OnCompleted& on_completed) {
  std::vector<char> unfinished(notified_.size(), 0);
  for (const Pending& pending : pending_) unfinished[pending.task] = 1;
  for (std::size_t task = 0; task < notified_.size(); ++task) {
    if (notified_[task] != 0 || unfinished[task] != 0) continue;
    notified_[task] = 1;
    on_completed(task);
  }
}

}  // namespace simile::engine
