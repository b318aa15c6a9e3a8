#include "query/resolve.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/matrix.h"
#include "engine/search/call_context.h"
#include "query/cold_start.h"
#include "query/combine_vectors.h"
#include "query/vector_builder.h"

namespace simile::query {
namespace {

// Whether the query names a user without a profile and says which rows to answer with instead.
bool IsColdStart(const engine::Snapshot& snapshot, const QueryRequest& request) {
  const auto* const user = std::get_if<ByUser>(&request.target);
  return user != nullptr && request.cold_start && !snapshot.dataset->profiles.ids.Find(user->id);
}

std::uint32_t VectorCount(const engine::Snapshot& snapshot, const QueryRequest& request) {
  if (IsColdStart(snapshot, request)) return 0;
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy == Strategy::kAverageVector) return 1;
  return static_cast<std::uint32_t>(examples->positive.size() + examples->negative.size());
}

void SortDistinct(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

// The rows of the ids that the collection has, ascending and distinct.
std::vector<Row> RowsOf(const data::IdIndex& index, std::span<const std::string_view> ids) {
  std::vector<Row> rows;
  for (const std::string_view id : ids) {
    if (const auto row = index.Find(id)) rows.push_back(*row);
  }
  SortDistinct(rows);
  return rows;
}

// Resolves one query of a call, and writes its vectors to the task's matrix.
class Resolver {
 public:
  //   row  written: its vectors, [vector_count, padded_dim]
  Resolver(const engine::Snapshot& snapshot, std::span<const Row> shared_exclusions,
           std::string prefix, float* row, engine::ResolvedQuery& query)
      : snapshot_(snapshot),
        shared_exclusions_(shared_exclusions),
        prefix_(std::move(prefix)),
        row_(row),
        query_(query),
        vectors_(snapshot) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status = ResolveFilter(request);
    if (status.ok()) status = ResolveRefinement(request);
    if (status.ok()) status = ResolveTarget(request);
    return status;
  }

 private:
  absl::Status ResolveFilter(const QueryRequest& request) {
    if (request.filter.empty() || query_.mask != nullptr) return absl::OkStatus();
    absl::StatusOr<std::shared_ptr<const RowMask>> rows = snapshot_.filters->Rows(request.filter);
    if (!rows.ok()) {
      return {rows.status().code(),
              fmt::format("{}filter, {}", prefix_, std::string(rows.status().message()))};
    }
    query_.mask = *std::move(rows);
    return absl::OkStatus();
  }

  absl::Status ResolveRefinement(const QueryRequest& request) {
    query_.score_threshold = request.score_threshold;
    query_.diversity = request.diversity;
    query_.k = CountWanted(request, snapshot_.row_count());
    if (!request.group_by) return absl::OkStatus();
    auto field = snapshot_.filters->FindKeywords(request.group_by->field);
    if (!field.ok()) {
      return {field.status().code(),
              fmt::format("{}group_by: {}", prefix_, std::string(field.status().message()))};
    }
    query_.k = CountWanted(request, field->column().keyword_count());
    query_.grouping = {*std::move(field), request.group_by->group_size};
    return absl::OkStatus();
  }

  // offset + k, of at most count_max rows or groups that exist.
  static std::uint32_t CountWanted(const QueryRequest& request, std::size_t count_max) {
    const std::uint64_t wanted = std::uint64_t{request.offset} + request.k;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, count_max));
  }

  absl::Status ResolveTarget(const QueryRequest& request) {
    if (IsColdStart(snapshot_, request)) {
      ResolveExclusions(request);
      return ResolveColdStart(*request.cold_start);
    }
    absl::Status status =
        std::visit([this](const auto& target) { return BuildVectors(target); }, request.target);
    ResolveExclusions(request);
    return status;
  }

  void ResolveExclusions(const QueryRequest& request) {
    std::vector<Row>& excluded = query_.excluded_rows;
    for (const std::string& id : request.exclude_ids) {
      if (const auto row = snapshot_.dataset->ids.Find(id)) excluded.push_back(*row);
    }
    SortDistinct(excluded);
    if (shared_exclusions_.empty()) return;
    std::vector<Row> all;
    all.reserve(excluded.size() + shared_exclusions_.size());
    std::set_union(excluded.begin(), excluded.end(), shared_exclusions_.begin(),
                   shared_exclusions_.end(), std::back_inserter(all));
    excluded = std::move(all);
  }

  absl::Status ResolveColdStart(const ColdStart& cold_start) {
    absl::StatusOr<engine::RowOrder> order = OrderOf(snapshot_, cold_start);
    if (!order.ok()) {
      return {order.status().code(), prefix_ + std::string(order.status().message())};
    }
    query_.order = *std::move(order);
    query_.diversity.reset();  // its rule needs scores
    return absl::OkStatus();
  }

  template <class Single>
  absl::Status BuildVectors(const Single& target) {
    return vectors_.Build(prefix_, target, row_, query_.excluded_rows);
  }

  absl::Status BuildVectors(const ByBlend& target) {
    return BuildBlend(vectors_, prefix_, target, row_, query_.excluded_rows);
  }

  absl::Status BuildVectors(const ByExamples& target) {
    if (target.strategy == Strategy::kAverageVector) {
      return BuildAverage(vectors_, prefix_, target, row_, query_.excluded_rows);
    }
    query_.scoring = target.strategy == Strategy::kBestScore ? engine::Scoring::kBestScore
                                                             : engine::Scoring::kSumScores;
    query_.positive_count = static_cast<std::uint32_t>(target.positive.size());
    for (const auto* const examples : {&target.positive, &target.negative}) {
      for (const Example& example : *examples) query_.weights.push_back(example.weight);
    }
    return BuildExamples(vectors_, prefix_, target, row_, query_.excluded_rows);
  }

  const engine::Snapshot& snapshot_;
  const std::span<const Row> shared_exclusions_;  // ascending, distinct
  const std::string prefix_;
  float* const row_;
  engine::ResolvedQuery& query_;
  const VectorBuilder vectors_;
};

}  // namespace

absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests,
                            std::span<const std::string_view> shared_exclude_ids,
                            const Clock& clock, engine::SearchTask& task) {
  task.queries.assign(requests.size(), {});
  const engine::CallContext context(task, clock);
  std::size_t vector_count = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    task.queries[index].vector_count = VectorCount(snapshot, requests[index]);
    vector_count += task.queries[index].vector_count;
  }
  absl::StatusOr<data::Matrix> vectors = data::Matrix::Create(vector_count, snapshot.dim());
  if (!vectors.ok()) return vectors.status();
  task.vectors = *std::move(vectors);

  const std::vector<Row> shared_exclusions = RowsOf(snapshot.dataset->ids, shared_exclude_ids);
  float* row = vector_count == 0 ? nullptr : task.vectors.MutableRow(0);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    engine::ResolvedQuery& query = task.queries[index];
    std::string prefix = requests.size() > 1 ? fmt::format("queries[{}]: ", index) : "";
    Resolver resolver(snapshot, shared_exclusions, std::move(prefix), row, query);
    // Queries of one call mostly share their filter; then they share its mask without a look-up.
    const bool same_filter = index > 0 && requests[index].filter == requests[index - 1].filter;
    if (same_filter) query.mask = task.queries[index - 1].mask;
    if (!same_filter && !requests[index].filter.empty()) {
      // Evaluating a filter may take long.
      absl::Status status = context.Check("the filters were evaluated");
      if (!status.ok()) return status;
    }
    if (absl::Status status = resolver.Resolve(requests[index]); !status.ok()) return status;
    row += query.vector_count * PaddedDim(snapshot.dim());
  }
  return absl::OkStatus();
}

}  // namespace simile::query
