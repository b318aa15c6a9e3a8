#include "recommend/resolve.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/matrix.h"
#include "recommend/combine_vectors.h"
#include "recommend/fallback.h"
#include "recommend/vector_builder.h"

namespace simile::recommend {
namespace {

// Whether the query asks with a user who has no profile and takes other rows instead.
bool FallsBack(const engine::Snapshot& snapshot, const QueryRequest& request) {
  const auto* const user = std::get_if<ByUser>(&request.target);
  return user != nullptr && request.fallback && !snapshot.dataset->profiles.ids.Find(user->id);
}

std::uint32_t VectorCount(const engine::Snapshot& snapshot, const QueryRequest& request) {
  if (FallsBack(snapshot, request)) return 0;
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy == Strategy::kAverageVector) return 1;
  return static_cast<std::uint32_t>(examples->positive.size() + examples->negative.size());
}

// Resolves one query of a call into a question and its rows of the task's matrix.
class Resolver {
 public:
  //   row  where its vectors go, [vector_count, padded_dim]
  Resolver(const engine::Snapshot& snapshot, std::string prefix, float* row,
           engine::Question& question)
      : snapshot_(snapshot),
        prefix_(std::move(prefix)),
        row_(row),
        question_(question),
        vectors_(snapshot) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status = ResolveFilter(request);
    if (status.ok()) status = ResolveRefinement(request);
    if (status.ok()) status = ResolveTarget(request);
    return status;
  }

 private:
  absl::Status ResolveFilter(const QueryRequest& request) {
    if (request.filter.empty() || question_.mask != nullptr) return absl::OkStatus();
    absl::StatusOr<std::shared_ptr<const RowMask>> rows = snapshot_.filters->Rows(request.filter);
    if (!rows.ok()) {
      return {rows.status().code(),
              fmt::format("{}filter, {}", prefix_, std::string(rows.status().message()))};
    }
    question_.mask = *std::move(rows);
    return absl::OkStatus();
  }

  absl::Status ResolveRefinement(const QueryRequest& request) {
    question_.score_threshold = request.score_threshold;
    question_.diversity = request.diversity;
    question_.k = FirstOf(request, snapshot_.row_count());
    if (!request.group_by) return absl::OkStatus();
    auto field = snapshot_.filters->FindKeywords(request.group_by->field);
    if (!field.ok()) {
      return {field.status().code(),
              fmt::format("{}group_by: {}", prefix_, std::string(field.status().message()))};
    }
    question_.k = FirstOf(request, field->column().keyword_count());
    question_.grouping = {*std::move(field), request.group_by->group_size};
    return absl::OkStatus();
  }

  // How many are wanted from the best on, of so many that there can be.
  static std::uint32_t FirstOf(const QueryRequest& request, std::size_t most) {
    const std::uint64_t wanted = std::uint64_t{request.offset} + request.k;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, most));
  }

  absl::Status ResolveTarget(const QueryRequest& request) {
    if (FallsBack(snapshot_, request)) {
      ResolveExclusions(request);
      return ResolveFallback(*request.fallback);
    }
    absl::Status status =
        std::visit([this](const auto& target) { return Target(target); }, request.target);
    ResolveExclusions(request);
    return status;
  }

  void ResolveExclusions(const QueryRequest& request) {
    std::vector<Row>& excluded = question_.excluded_rows;
    for (const std::string& id : request.exclude_ids) {
      if (const auto row = snapshot_.dataset->ids.Find(id)) excluded.push_back(*row);
    }
    std::sort(excluded.begin(), excluded.end());
    excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
  }

  absl::Status ResolveFallback(const Fallback& fallback) {
    absl::StatusOr<engine::RowOrder> order = OrderOf(snapshot_, fallback);
    if (!order.ok()) {
      return {order.status().code(), prefix_ + std::string(order.status().message())};
    }
    question_.order = *std::move(order);
    question_.diversity.reset();  // rows without scores have nothing to weigh against likeness
    return absl::OkStatus();
  }

  template <class Single>
  absl::Status Target(const Single& target) {
    return vectors_.Build(prefix_, target, row_, question_.excluded_rows);
  }

  absl::Status Target(const ByBlend& target) {
    return BuildBlend(vectors_, prefix_, target, row_, question_.excluded_rows);
  }

  absl::Status Target(const ByExamples& target) {
    if (target.strategy == Strategy::kAverageVector) {
      return BuildAverage(vectors_, prefix_, target, row_, question_.excluded_rows);
    }
    question_.scoring = target.strategy == Strategy::kBestScore ? engine::Scoring::kBestScore
                                                                : engine::Scoring::kSumScores;
    question_.positive_count = static_cast<std::uint32_t>(target.positive.size());
    for (const auto* const examples : {&target.positive, &target.negative}) {
      for (const Example& example : *examples) question_.weights.push_back(example.weight);
    }
    return BuildExamples(vectors_, prefix_, target, row_, question_.excluded_rows);
  }

  const engine::Snapshot& snapshot_;
  const std::string prefix_;
  float* const row_;
  engine::Question& question_;
  const VectorBuilder vectors_;
};

// Filters may take a while.
absl::Status CheckGoesOn(const engine::SearchTask& task, const Clock& clock) {
  if (task.cancelled && task.cancelled()) {
    return absl::CancelledError("the caller gave up before the filters were evaluated");
  }
  if (clock.Now() >= task.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the filters were evaluated");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const Clock& clock,
                            engine::SearchTask& task) {
  task.questions.assign(requests.size(), {});
  std::size_t vector_count = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    task.questions[index].vector_count = VectorCount(snapshot, requests[index]);
    vector_count += task.questions[index].vector_count;
  }
  absl::StatusOr<data::Matrix> vectors = data::Matrix::Create(vector_count, snapshot.dim());
  if (!vectors.ok()) return vectors.status();
  task.vectors = *std::move(vectors);

  float* row = vector_count == 0 ? nullptr : task.vectors.MutableRow(0);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    engine::Question& question = task.questions[index];
    std::string prefix = requests.size() > 1 ? fmt::format("queries[{}]: ", index) : "";
    Resolver resolver(snapshot, std::move(prefix), row, question);
    // Queries of one call mostly share their filter: then they share its mask without another look.
    const bool same_filter = index > 0 && requests[index].filter == requests[index - 1].filter;
    if (same_filter) question.mask = task.questions[index - 1].mask;
    if (!same_filter && !requests[index].filter.empty()) {
      if (absl::Status status = CheckGoesOn(task, clock); !status.ok()) return status;
    }
    if (absl::Status status = resolver.Resolve(requests[index]); !status.ok()) return status;
    row += question.vector_count * PaddedDim(snapshot.dim());
  }
  return absl::OkStatus();
}

}  // namespace simile::recommend
