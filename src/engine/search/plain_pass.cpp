#include "engine/search/plain_pass.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace simile::engine {

absl::Status PlainPass::Run(std::span<const Part> parts) {
  assert(!parts.empty());
  for (const Part& part : parts) part.task->in_slice = true;
  absl::Status status;
  try {
    status = Search(parts);
    if (status.ok()) ReadResults(parts);
  } catch (const std::bad_alloc&) {
    status = NoMemoryForBatch();
  }
  if (status.ok()) return status;
  for (const Part& part : parts) part.task->status = status;
  return status;
}

absl::Status PlainPass::Search(std::span<const Part> parts) {
  const Snapshot& snapshot = *parts.front().task->task->snapshot;
  SearchWorkspace& space = workspace_;
  if (parts.size() == 1) {
    const TaskProgress& progress = *parts.front().task;
    const std::size_t first = progress.next_query;
    const std::size_t count = parts.front().query_count;
    specs_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      specs_.push_back(SpecOf(progress.task->queries[first + i]));
    }
    const MatrixView vectors = progress.task->vectors.view().Slice(first, count);
    return space.search.Run(snapshot.segments, {vectors, specs_}, space.result);
  }
  space.builder.Clear(snapshot.dim());
  for (const Part& part : parts) {
    const SearchTask& task = *part.task->task;
    for (std::size_t i = 0; i < part.query_count; ++i) {
      const std::size_t query = part.task->next_query + i;
      space.builder.Add(task.vectors.view().PaddedRow(query), SpecOf(task.queries[query]));
    }
  }
  return space.search.Run(snapshot.segments, space.builder.batch(), space.result);
}

void PlainPass::ReadResults(std::span<const Part> parts) {
  const SearchResult& result = workspace_.result;
  std::size_t search = 0;
  for (const Part& part : parts) {
    TaskProgress& progress = *part.task;
    for (std::size_t i = 0; i < part.query_count; ++i, ++search) {
      QueryResult& query_result = progress.results[progress.next_query + i];
      const std::span<const Hit> hits = result.Hits(search);
      query_result.hits.assign(hits.begin(), hits.end());
      query_result.execution.AddSearch(result, search);
    }
    progress.next_query += part.query_count;
    progress.answered += part.query_count;
    progress.batch_size = std::max(progress.batch_size, static_cast<std::uint32_t>(result.batch()));
  }
}

}  // namespace simile::engine
