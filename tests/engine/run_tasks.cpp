#include "engine/run_tasks.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "engine/queue/queued_task.h"
#include "engine/search/hard_queries.h"
#include "engine/search/plain_pass.h"

namespace simile::engine {

std::vector<absl::StatusOr<std::vector<QueryResult>>> RunTasks(
    std::span<const std::unique_ptr<SearchTask>> tasks, const Clock& clock) {
  constexpr std::uint32_t kSearchesMax = 1U << 20;
  SearchWorkspace workspace;
  PlainPass pass;
  HardQueries hard_queries(tasks.front()->snapshot, workspace, clock);
  std::vector<TaskProgress> progress(tasks.size());
  std::vector<PlainPass::Part> plain;
  std::vector<TaskProgress*> hard;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    progress[i].task = tasks[i].get();
    progress[i].results.resize(tasks[i]->queries.size());
    if (IsHard(*tasks[i])) {
      hard.push_back(&progress[i]);
    } else {
      plain.push_back({&progress[i], nullptr, tasks[i]->queries.size()});
    }
  }
  if (!plain.empty()) {
    pass.Begin(plain, nullptr);
    static_cast<void>(pass.Advance(WholeTurn()));
  }
  const Clock::Duration slice = std::chrono::hours(1);
  const std::atomic<bool> yield = false;
  HardQueries::Report report;
  hard_queries.RunSlice(
      hard,
      {.end = clock.Now() + slice, .length = slice, .searches_max = kSearchesMax, .yield = yield},
      report);
  std::vector<absl::StatusOr<std::vector<QueryResult>>> answers;
  for (TaskProgress& task : progress) {
    if (task.status.ok()) {
      answers.emplace_back(std::move(task.results));
    } else {
      answers.emplace_back(task.status);
    }
  }
  return answers;
}

}  // namespace simile::engine
