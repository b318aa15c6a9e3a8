#include "engine/batch_runner.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <string_view>
#include <utility>

namespace simile::engine {
namespace {

// Adds a name to "int8-amx + gather-avx512" unless it stands there.
void AddEngine(std::string_view name, std::string& engines) {
  if (name.empty() || engines.find(name) != std::string::npos) return;
  if (!engines.empty()) engines += " + ";
  engines += name;
}

}  // namespace

absl::Status BatchRunner::Run(std::span<const std::unique_ptr<SearchTask>> tasks,
                              std::vector<SearchAnswer>& answers) {
  assert(!tasks.empty());
  try {
    if (absl::Status status = Search(tasks); !status.ok()) return status;
    answers.clear();
    std::size_t first_query = 0;
    for (const auto& task : tasks) {
      answers.push_back(Answer(first_query, task->specs.size()));
      first_query += task->specs.size();
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    // A batch of large k can ask for much; the server outlives it.
    return absl::ResourceExhaustedError("no memory for the batch; ask for fewer hits at a time");
  }
}

absl::Status BatchRunner::Search(std::span<const std::unique_ptr<SearchTask>> tasks) {
  absl::StatusOr<MatrixView> queries = Queries(tasks);
  if (!queries.ok()) return queries.status();
  specs_.clear();
  for (const auto& task : tasks) {
    for (const OwnedQuery& query : task->specs) {
      specs_.push_back({query.k, query.mask.get(), query.excluded_rows, query.score_threshold});
    }
  }
  return search_.Run(tasks.front()->snapshot->segments, {*queries, specs_}, result_);
}

SearchAnswer BatchRunner::Answer(std::size_t first_query, std::size_t query_count) const {
  SearchAnswer answer;
  answer.hits.reserve(query_count);
  for (std::size_t query = first_query; query < first_query + query_count; ++query) {
    const std::span<const Hit> hits = result_.Hits(query);
    answer.hits.emplace_back(hits.begin(), hits.end());
    answer.receipt.cost += result_.Cost(query);
    AddEngine(result_.Engine(query), answer.receipt.engine);
  }
  return answer;
}

absl::StatusOr<MatrixView> BatchRunner::Queries(
    std::span<const std::unique_ptr<SearchTask>> tasks) {
  if (tasks.size() == 1) return tasks.front()->queries.view();
  const std::size_t dim = tasks.front()->queries.dim();
  std::size_t query_count = 0;
  for (const auto& task : tasks) query_count += task->queries.row_count();

  const std::size_t lanes_needed = query_count * PaddedDim(dim) / kLaneCount;
  if (gathered_.row_count() < lanes_needed) {
    const std::size_t lanes = std::max(lanes_needed, 2 * gathered_.row_count());
    absl::StatusOr<data::Matrix> room = data::Matrix::Create(lanes, kLaneCount);
    if (!room.ok()) return room.status();
    gathered_ = *std::move(room);
  }
  float* const start = gathered_.MutableRow(0);
  float* next = start;
  for (const auto& task : tasks) {
    const MatrixView queries = task->queries.view();
    assert(queries.dim() == dim);
    next = std::copy_n(queries.data(), queries.row_count() * queries.padded_dim(), next);
  }
  return MatrixView(start, query_count, dim);
}

}  // namespace simile::engine
