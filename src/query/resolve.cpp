#include "query/resolve.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/matrix.h"
#include "filter/filters.h"
#include "query/cold_start.h"
#include "query/combine_vectors.h"
#include "query/existing_items.h"
#include "query/place.h"
#include "query/vector_builder.h"

namespace simile::query {
namespace {

// The work of one query, estimated: all of it but its vectors, one number of those, and one
// excluded id, which is looked up and sorted.
constexpr std::uint64_t kQueryNs = 500;
constexpr std::uint64_t kNumberNs = 2;
constexpr std::uint64_t kExcludedIdNs = 170;

// Whether the query names a user without a profile and says which rows to answer with instead.
bool IsColdStart(const engine::Snapshot& snapshot, const data::UserScope& users,
                 const QueryRequest& request) {
  const auto* const user = std::get_if<ByUser>(&request.target);
  return user != nullptr && request.cold_start &&
         !users.Find(snapshot.dataset->profiles.ids, user->id);
}

std::uint32_t VectorCount(const engine::Snapshot& snapshot, const data::UserScope& users,
                          const QueryRequest& request) {
  if (IsColdStart(snapshot, users, request)) return 0;
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy == Strategy::kAverageVector) return 1;
  return static_cast<std::uint32_t>(examples->positive.size() + examples->negative.size());
}

void SortDistinct(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

using MaskPtr = std::shared_ptr<const RowMask>;
using RowsPtr = std::shared_ptr<const std::vector<Row>>;

// Adds the rows of the ids that the collection has.
template <class Ids>
absl::Status AddRowsOf(const data::IdIndex& index, const Ids& ids, base::LongWork& work,
                       std::vector<Row>& rows) {
  for (const std::string_view id : ids) {
    if (const auto row = index.Find(id)) rows.push_back(*row);
    if (absl::Status status = work.Did(kExcludedIdNs); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The rows that every query of the call leaves out, ascending and distinct; null for none.
absl::StatusOr<RowsPtr> SharedExclusions(const data::IdIndex& index,
                                         std::span<const std::string_view> ids,
                                         base::LongWork& work) {
  std::vector<Row> rows;
  absl::Status status = AddRowsOf(index, ids, work, rows);
  if (!status.ok()) return status;
  if (rows.empty()) return nullptr;
  SortDistinct(rows);
  return std::make_shared<const std::vector<Row>>(std::move(rows));
}

absl::Status FilterError(const absl::Status& status, const QueryRequest& request,
                         const Place& place) {
  const base::ErrorReason reason = base::ReasonOf(status);
  if (reason != base::ErrorReason::kInvalidFilter) return status;
  const std::string what = fmt::format("filter, {}", std::string(status.message()));
  return request.filter_is_default ? base::Error(reason, what, "options.filter")
                                   : ErrorAt(place, "filter", reason, what);
}

// The rows that the queries of one call may return: those that are searchable, exist for it and
// pass the query's filter. Has a mask for each different filter of the call, of which the service
// bounds the number. Borrows what it is made from, and the filters' texts.
class CallMasks {
 public:
  CallMasks(const engine::Snapshot& snapshot, const ExistingItems& items, base::LongWork& work)
      : snapshot_(snapshot),
        work_(work),
        fields_(items.fields()),
        looks_(items.looks()),
        unfiltered_(snapshot.filters->Intersection({"", snapshot.searchable}, items.named_rows())) {
  }

  // Reads a query's filter. To be done for all before the first is evaluated.
  // Errors: Filters::Prepare's.
  absl::Status Read(std::string_view filter) {
    if (filter.empty()) return absl::OkStatus();
    Filter*& known = by_given_text_[filter];
    if (known != nullptr) return absl::OkStatus();
    auto prepared = snapshot_.filters->Prepare(filter, fields_, work_);
    if (!prepared.ok()) return prepared.status();
    const auto [place, is_new] = by_canonical_text_.try_emplace(prepared->text);
    known = &place->second;
    if (!is_new) return absl::OkStatus();
    looks_ += prepared->looks;
    known->filter = *std::move(prepared);
    return absl::OkStatus();
  }
  // How often all of them look at rows and keywords, estimated.
  std::uint64_t looks() const { return looks_; }

  // Null for all rows. REQUIRES: the filter was read.
  // Errors: work's.
  absl::StatusOr<MaskPtr> Of(std::string_view filter) {
    if (filter.empty()) return unfiltered_.rows;
    Filter& known = *by_given_text_.find(filter)->second;
    if (known.mask != nullptr) return known.mask;
    const absl::StatusOr<MaskPtr> passing = snapshot_.filters->Rows(known.filter, work_);
    if (!passing.ok()) return passing;
    // The mask is copied here unless that is cached, and counted later.
    absl::Status status = work_.Did(snapshot_.row_count() / 32);
    if (!status.ok()) return status;
    known.mask = snapshot_.filters->Intersection({known.filter.text, *passing}, unfiltered_).rows;
    known.filter.rows.reset();
    return known.mask;
  }

 private:
  struct Filter {
    filter::PreparedFilter filter;
    MaskPtr mask;  // null until it is evaluated
  };

  const engine::Snapshot& snapshot_;
  base::LongWork& work_;
  const filter::PayloadView fields_;  // that exist for the caller
  std::uint64_t looks_;
  const filter::NamedRows unfiltered_;  // the rows of a query without a filter
  std::map<std::string, Filter> by_canonical_text_;
  std::map<std::string_view, Filter*> by_given_text_;
};

// What the queries of a call are resolved with.
struct CallParts {
  const engine::Snapshot& snapshot;
  const ExistingItems& items;
  const RowsPtr& shared_exclusions;
  CallMasks& masks;
  base::LongWork& work;
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
        vectors_(call.snapshot, call.items, call.work) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status = ResolveFilter(request);
    if (status.ok()) status = ResolveRefinement(request);
    if (status.ok()) status = CheckColdStart(request);
    if (status.ok()) status = ResolveTarget(request);
    if (status.ok()) status = ResolveExclusions(request);
    if (!status.ok()) return status;
    return call_.work.Did(kQueryNs + query_.vector_count * snapshot_.dim() * kNumberNs);
  }

 private:
  absl::Status ResolveFilter(const QueryRequest& request) {
    query_.existing = call_.items.mask();
    absl::StatusOr<MaskPtr> mask = call_.masks.Of(request.filter);
    if (mask.ok()) query_.mask = *std::move(mask);
    return mask.status();
  }

  absl::Status ResolveRefinement(const QueryRequest& request) {
    query_.score_threshold = request.score_threshold;
    query_.diversity = request.diversity;
    query_.k = CountWanted(request, snapshot_.row_count());
    if (!request.group_by) return absl::OkStatus();
    auto field = snapshot_.filters->FindKeywords(request.group_by->field, call_.items.fields());
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
    return Order(*request.cold_start).status();
  }

  // offset + k, of at most count_max rows or groups that exist.
  static std::uint32_t CountWanted(const QueryRequest& request, std::size_t count_max) {
    const std::uint64_t wanted = std::uint64_t{request.offset} + request.k;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, count_max));
  }

  absl::Status ResolveTarget(const QueryRequest& request) {
    if (IsColdStart(snapshot_, call_.items.users(), request))
      return ResolveColdStart(*request.cold_start);
    return std::visit([this](const auto& target) { return BuildVectors(target); }, request.target);
  }

  absl::Status ResolveExclusions(const QueryRequest& request) {
    std::vector<Row>& excluded = query_.excluded_rows;
    absl::Status status =
        AddRowsOf(snapshot_.dataset->ids, request.exclude_ids, call_.work, excluded);
    if (!status.ok()) return status;
    SortDistinct(excluded);
    if (call_.shared_exclusions == nullptr) return absl::OkStatus();
    const std::vector<Row>& shared = *call_.shared_exclusions;
    if (std::ranges::includes(shared, excluded)) {
      query_.shared_excluded_rows = call_.shared_exclusions;
      excluded = std::vector<Row>();
      return absl::OkStatus();
    }
    std::vector<Row> all;
    all.reserve(excluded.size() + shared.size());
    std::ranges::set_union(excluded, shared, std::back_inserter(all));
    excluded = std::move(all);
    return call_.work.Did(excluded.size());
  }

  absl::Status ResolveColdStart(const ColdStart& cold_start) {
    absl::StatusOr<engine::RowOrder> order = Order(cold_start);
    if (!order.ok()) return order.status();
    query_.order = *std::move(order);
    query_.diversity.reset();  // its rule needs scores
    return absl::OkStatus();
  }

  absl::StatusOr<engine::RowOrder> Order(const ColdStart& cold_start) const {
    return OrderOf(snapshot_, cold_start, call_.items, call_.work);
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
                            base::LongWork& work, engine::SearchTask& task) {
  task.queries.assign(requests.size(), {});
  std::size_t vector_count = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    task.queries[index].vector_count =
        VectorCount(snapshot, options.required_filters.users, requests[index]);
    vector_count += task.queries[index].vector_count;
  }
  absl::StatusOr<data::Matrix> vectors = data::Matrix::Create(vector_count, snapshot.dim());
  if (!vectors.ok()) return vectors.status();
  task.vectors = *std::move(vectors);

  const auto place_of = [&](std::size_t index) {
    return Place{.list = options.list, .index = index, .alone = requests.size() == 1, .part = {}};
  };
  const auto items =
      ExistingItems::Create(snapshot, options.required_filters, "options.required_filter", work);
  if (!items.ok()) return items.status();
  CallMasks masks(snapshot, *items, work);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const absl::Status status = masks.Read(requests[index].filter);
    if (!status.ok()) return FilterError(status, requests[index], place_of(index));
  }
  const absl::Status within = snapshot.filters->CheckLooks(masks.looks(), items->fields());
  if (!within.ok()) {
    return base::Error(base::ReasonOf(within), std::string(within.message()), options.list);
  }
  const auto shared_exclusions = SharedExclusions(snapshot.dataset->ids, options.exclude_ids, work);
  if (!shared_exclusions.ok()) return shared_exclusions.status();
  const CallParts call{snapshot, *items, *shared_exclusions, masks, work};
  float* row = vector_count == 0 ? nullptr : task.vectors.MutableRow(0);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    engine::ResolvedQuery& query = task.queries[index];
    absl::Status status = Resolver(call, place_of(index), row, query).Resolve(requests[index]);
    if (!status.ok()) return status;
    row += query.vector_count * PaddedDim(snapshot.dim());
  }
  return absl::OkStatus();
}

}  // namespace simile::query
