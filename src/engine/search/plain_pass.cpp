#include "engine/search/plain_pass.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <new>

namespace simile::engine {

void PlainPass::Begin(std::span<const Part> parts, DeviceTime* device_time) {
  assert(!parts.empty() && !under_way());
  const Snapshot& snapshot = *parts.front().task->task->snapshot;
  SearchBatch batch;
  if (parts.size() == 1) {
    const TaskProgress& progress = *parts.front().task;
    const std::size_t first = progress.next_query;
    const std::size_t count = parts.front().query_count;
    specs_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      specs_.push_back(ToSpec(progress.task->queries[first + i]));
    }
    batch = {progress.task->vectors.view().Slice(first, count), specs_};
  } else {
    workspace_.builder.Clear(snapshot.dim());
    for (const Part& part : parts) {
      const SearchTask& task = *part.task->task;
      for (std::size_t i = 0; i < part.query_count; ++i) {
        const std::size_t query = part.task->next_query + i;
        workspace_.builder.Add(task.vectors.view().PaddedRow(query), ToSpec(task.queries[query]));
      }
    }
    batch = workspace_.builder.batch();
  }
  workspace_.search.set_device_time(device_time);
  workspace_.search.Begin(snapshot.segments, batch, workspace_.result);
  parts_.reserve(parts.size());
  for (const Part& part : parts) {
    parts_.push_back({part, part.task->next_query});
    part.task->next_query += part.query_count;
  }
}

bool PlainPass::Start() {
  try {
    return workspace_.search.Start();
  } catch (const std::bad_alloc&) {
    Fail(NoMemoryForBatch());
    for (const Queries& queries : parts_) queries.part.task->in_slice = true;
    End();
    return false;
  }
}

absl::StatusOr<bool> PlainPass::Advance(const Turn& turn) {
  for (const Queries& queries : parts_) {
    if (queries.part.task != nullptr) queries.part.task->in_slice = true;
  }
  absl::StatusOr<bool> done;
  try {
    done = workspace_.search.Advance(turn);
    if (done.ok() && *done) ReadResults();
  } catch (const std::bad_alloc&) {
    done = NoMemoryForBatch();
  }
  if (!done.ok()) Fail(done.status());
  if (!done.ok() || *done) End();
  return done;
}

void PlainPass::Drop(const TaskProgress& task) {
  bool any_left = false;
  for (Queries& queries : parts_) {
    if (queries.part.task == &task) {
      queries.part.task = nullptr;
      dropped_bytes_ += queries.part.owner->vectors.bytes() + queries.part.owner->request_bytes;
    }
    any_left = any_left || queries.part.task != nullptr;
  }
  if (!any_left) End();
}

void PlainPass::End() {
  workspace_.search.End();
  workspace_.result.Release();
  parts_.clear();
  dropped_bytes_ = 0;
}

void PlainPass::Fail(const absl::Status& status) {
  for (const Queries& queries : parts_) {
    if (queries.part.task != nullptr) queries.part.task->status = status;
  }
}

void PlainPass::ReadResults() {
  std::size_t search = 0;
  for (const auto& [part, first] : parts_) {
    if (part.task != nullptr) {
      TaskProgress& progress = *part.task;
      ReadHits(search, std::span(progress.results).subspan(first, part.query_count));
      progress.answered += part.query_count;
      progress.batch_size = std::max(progress.batch_size, batch_size());
    }
    search += part.query_count;
  }
}

void PlainPass::ReadHits(std::size_t search, std::span<QueryResult> query_results) {
  const SearchResult& result = workspace_.result;
  std::size_t hit_count = 0;
  for (std::size_t i = 0; i < query_results.size(); ++i)
    hit_count += result.Hits(search + i).size();
  const std::shared_ptr<Hit[]> block = std::make_shared<Hit[]>(hit_count);
  std::size_t next_hit = 0;
  for (QueryResult& query_result : query_results) {
    const std::span<const Hit> hits = result.Hits(search);
    std::ranges::copy(hits, block.get() + next_hit);
    query_result.hits = QueryHits(block, next_hit, hits.size());
    query_result.execution.AddSearch(result, search);
    next_hit += hits.size();
    ++search;
  }
}

}  // namespace simile::engine
