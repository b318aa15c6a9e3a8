#include "query/resolve.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "data/matrix.h"
#include "engine/search/call_context.h"
#include "query/cold_start.h"
#include "query/combine_vectors.h"
#include "query/existing_items.h"
#include "query/place.h"
#include "query/vector_builder.h"

namespace simile::query {
namespace {

// What a call that is over has not reached: evaluating a filter may take long.
constexpr std::string_view kStep = "the filters were evaluated";

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

using MaskPtr = std::shared_ptr<const RowMask>;

// The rows of both masks; null for all.
MaskPtr Intersection(const MaskPtr& a, const MaskPtr& b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  RowMask both = *a;
  both.IntersectWith(*b);
  return std::make_shared<const RowMask>(std::move(both));
}

// The rows that the queries of one call may return: those that are searchable, exist for it and
// pass the query's filter. Makes a mask for each different filter of the call, of which the service
// bounds the number. Borrows what it is made from, and the filters' texts.
class CallMasks {
 public:
  //   query_count  of the call
  CallMasks(const engine::Snapshot& snapshot, const ExistingItems& items,
            const engine::CallContext& context, std::size_t query_count)
      : snapshot_(snapshot),
        context_(context),
        is_lone_(query_count == 1),
        unfiltered_(Intersection(snapshot.searchable, items.mask())) {}

  // Null for all rows.
  // Errors: Filters::Rows' and CallContext's.
  absl::StatusOr<MaskPtr> Of(std::string_view filter) {
    if (filter.empty()) return unfiltered_;
    // Queries of one call mostly share their filter.
    if (last_ != nullptr && filter == last_filter_) return last_;
    if (const auto known = masks_.find(filter); known != masks_.end()) return known->second;
    absl::StatusOr<MaskPtr> mask = Make(filter);
    if (!mask.ok() || is_lone_) return mask;
    last_filter_ = filter;
    last_ = *mask;
    masks_.emplace(filter, last_);
    return mask;
  }

 private:
  absl::StatusOr<MaskPtr> Make(std::string_view filter) const {
    absl::Status status = context_.Check(kStep);
    if (!status.ok()) return status;
    absl::StatusOr<MaskPtr> passing = snapshot_.filters->Rows(filter);
    if (!passing.ok()) return passing;
    return Intersection(*passing, unfiltered_);
  }

  const engine::Snapshot& snapshot_;
  const engine::CallContext& context_;
  const bool is_lone_;
  const MaskPtr unfiltered_;  // the rows of a query without a filter
  std::string_view last_filter_;
  MaskPtr last_;
  absl::flat_hash_map<std::string_view, MaskPtr> masks_;
};

// What the queries of a call are resolved with.
struct CallParts {
  const engine::Snapshot& snapshot;
  const ExistingItems& items;
  std::span<const Row> shared_exclusions;  // ascending, distinct
  CallMasks& masks;
};

// Resolves one query of a call, and writes its vectors to the task's matrix.
class Resolver {
 public:
  //   row  written: its vectors, [vector_count, padded_dim]
  Resolver(const CallParts& call, const Place& place, float* row, engine::ResolvedQuery& query)
      : call_(call),
        snapshot_(call.snapshot),
        place_(place),
        row_(row),
        query_(query),
        vectors_(call.snapshot, call.items) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status = ResolveFilter(request);
    if (status.ok()) status = ResolveRefinement(request);
    if (status.ok()) status = CheckColdStart(request);
    if (status.ok()) status = ResolveTarget(request);
    return status;
  }

 private:
  absl::Status ResolveFilter(const QueryRequest& request) {
    query_.existing = call_.items.mask();
    absl::StatusOr<MaskPtr> mask = call_.masks.Of(request.filter);
    if (mask.ok()) {
      query_.mask = *std::move(mask);
      return absl::OkStatus();
    }
    const base::ErrorReason reason = base::ReasonOf(mask.status());
    if (reason != base::ErrorReason::kInvalidFilter) return mask.status();
    const std::string what = fmt::format("filter, {}", std::string(mask.status().message()));
    return request.filter_is_default ? base::Error(reason, what, "options.filter")
                                     : ErrorAt(place_, "filter", reason, what);
  }

  absl::Status ResolveRefinement(const QueryRequest& request) {
    query_.score_threshold = request.score_threshold;
    query_.diversity = request.diversity;
    query_.k = CountWanted(request, snapshot_.row_count());
    if (!request.group_by) return absl::OkStatus();
    auto field = snapshot_.filters->FindKeywords(request.group_by->field);
    if (!field.ok()) {
      const base::ErrorReason reason = base::ReasonOf(field.status());
      const std::string what = fmt::format("group_by: {}", std::string(field.status().message()));
      return request.group_by_is_default ? base::Error(reason, what, "options.group_by.field")
                                         : ErrorAt(place_, "group_by.field", reason, what);
    }
    query_.k = CountWanted(request, field->column().keyword_count());
    query_.grouping = {*std::move(field), request.group_by->group_size};
    return absl::OkStatus();
  }

  // Refuses a field that rows cannot be ordered by, whether or not this query needs their order: a
  // mistake should not wait for the first user without a profile.
  absl::Status CheckColdStart(const QueryRequest& request) const {
    if (!request.cold_start || request.cold_start->field.empty()) return absl::OkStatus();
    return OrderOf(snapshot_, *request.cold_start).status();
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
    const std::span<const Row> shared = call_.shared_exclusions;
    if (shared.empty()) return;
    std::vector<Row> all;
    all.reserve(excluded.size() + shared.size());
    std::set_union(excluded.begin(), excluded.end(), shared.begin(), shared.end(),
                   std::back_inserter(all));
    excluded = std::move(all);
  }

  absl::Status ResolveColdStart(const ColdStart& cold_start) {
    absl::StatusOr<engine::RowOrder> order = OrderOf(snapshot_, cold_start);
    if (!order.ok()) return order.status();
    query_.order = *std::move(order);
    query_.diversity.reset();  // its rule needs scores
    return absl::OkStatus();
  }

  template <class Single>
  absl::Status BuildVectors(const Single& target) {
    return vectors_.Build(place_, target, row_, query_.excluded_rows);
  }

  absl::Status BuildVectors(const ByBlend& target) {
    return BuildBlend(vectors_, place_, target, row_, query_.excluded_rows);
  }

  absl::Status BuildVectors(const ByExamples& target) {
    if (target.strategy == Strategy::kAverageVector) {
      return BuildAverage(vectors_, place_, target, row_, query_.excluded_rows);
    }
    query_.scoring = target.strategy == Strategy::kBestScore ? engine::Scoring::kBestScore
                                                             : engine::Scoring::kSumScores;
    query_.positive_count = static_cast<std::uint32_t>(target.positive.size());
    for (const auto* const examples : {&target.positive, &target.negative}) {
      for (const Example& example : *examples) query_.weights.push_back(example.weight);
    }
    return BuildExamples(vectors_, place_, target, row_, query_.excluded_rows);
  }

  const CallParts& call_;
  const engine::Snapshot& snapshot_;
  const Place place_;
  float* const row_;
  engine::ResolvedQuery& query_;
  const VectorBuilder vectors_;
};

}  // namespace

absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const CallOptions& options,
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

  if (!options.required_filter.empty()) {
    absl::Status status = context.Check(kStep);
    if (!status.ok()) return status;
  }
  const auto items =
      ExistingItems::Create(snapshot, options.required_filter, "options.required_filter");
  if (!items.ok()) return items.status();
  CallMasks masks(snapshot, *items, context, requests.size());
  const std::vector<Row> shared_exclusions = RowsOf(snapshot.dataset->ids, options.exclude_ids);
  const CallParts call{snapshot, *items, shared_exclusions, masks};
  float* row = vector_count == 0 ? nullptr : task.vectors.MutableRow(0);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    engine::ResolvedQuery& query = task.queries[index];
    const Place place{
        .list = options.list, .index = index, .alone = requests.size() == 1, .part = {}};
    absl::Status status = Resolver(call, place, row, query).Resolve(requests[index]);
    if (!status.ok()) return status;
    row += query.vector_count * PaddedDim(snapshot.dim());
  }
  return absl::OkStatus();
}

}  // namespace simile::query
