#include "engine/query/resolve.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "certificate/canonical_score.h"
#include "data/matrix.h"
#include "engine/query/existing_items.h"
#include "engine/query/other_items.h"
#include "engine/query/query_options.h"
#include "engine/query/query_request.h"
#include "engine/query/unknown_ids.h"
#include "engine/query/vector_builder.h"
#include "filter/expression.h"
#include "filter/filters.h"

namespace simile::engine {
namespace {

// Estimated times: a query without its vectors; one number of a vector; one listed id. An excluded
// id is looked up and sorted; an allowed id is looked up and marked.
constexpr std::uint64_t kQueryNs = 500;
constexpr std::uint64_t kNumberNs = 2;
constexpr std::uint64_t kListedIdNs = 170;
// A row that a user has seen is copied and later sorted when it is left out; otherwise it is
// counted.
constexpr std::uint64_t kSeenRowNs = 20;
constexpr std::uint64_t kSeenRowCountedNs = 2;

// Whether the query names a user without a profile and says which rows to return instead.
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

// Callers keep long lists of what a user has dismissed, and answers must stay small.
constexpr std::uint64_t kUnknownNamedMax = 3;

// The names that notes use for a list of ids.
struct IdList {
  std::string_view field;  // "exclude_ids"
  std::string_view verb;   // "exclude"
};

// `exclude_ids: the collection does not have 5 of these ids, which exclude nothing: "a", "b", "c",
// and 2 more`
std::string UnknownIdsNote(const IdList& list, std::span<const std::string_view> first,
                           std::uint64_t count) {
  return fmt::format("{}: the collection does not have {} of these ids, which {}{} nothing: {}",
                     list.field, base::Grouped(count), list.verb, count == 1 ? "s" : "",
                     NamedIdsText(first, count));
}

// Adds the rows of the ids that exist for the call, and a note about the ids that do not exist.
template <class Ids>
absl::Status AddRows(const ExistingItems& items, const IdList& list, const Ids& ids,
                     base::LongWork& work, std::vector<Row>& rows,
                     std::vector<std::string>& notes) {
  std::vector<std::string_view> unknown;  // the first few
  std::uint64_t unknown_count = 0;
  for (const std::string_view id : ids) {
    if (const auto row = items.Find(id)) {
      rows.push_back(*row);
    } else if (++unknown_count <= kUnknownNamedMax) {
      unknown.push_back(id);
    }
    if (absl::Status status = work.Did(kListedIdNs); !status.ok()) return status;
  }
  if (unknown_count > 0) notes.push_back(UnknownIdsNote(list, unknown, unknown_count));
  return absl::OkStatus();
}

// The rows that every query of the call leaves out, ascending and distinct; null for none.
absl::StatusOr<RowsPtr> SharedExclusions(const ExistingItems& items,
                                         std::span<const std::string_view> ids,
                                         base::LongWork& work, std::vector<std::string>& notes) {
  std::vector<Row> rows;
  absl::Status status = AddRows(items, {"options.exclude_ids", "exclude"}, ids, work, rows, notes);
  if (!status.ok()) return status;
  if (rows.empty()) return nullptr;
  SortDistinct(rows);
  return std::make_shared<const std::vector<Row>>(std::move(rows));
}

// The rows that the queries of the call may return; null for all.
absl::StatusOr<MaskPtr> AllowedRows(const ExistingItems& items, std::size_t row_count,
                                    std::optional<std::span<const std::string_view>> ids,
                                    base::LongWork& work, std::vector<std::string>& notes) {
  if (!ids) return nullptr;
  std::vector<Row> rows;
  absl::Status status = AddRows(items, {"options.allow_ids", "allow"}, *ids, work, rows, notes);
  // Estimated: 1/16 ns a row to clear, combine and count the mask.
  if (status.ok()) status = work.Did(row_count / 16);
  if (!status.ok()) return status;
  auto mask = std::make_shared<RowMask>(row_count);
  for (const Row row : rows) mask->Allow(row);
  return mask;
}

absl::Status FilterError(const absl::Status& status, const QueryRequest& request,
                         const Place& place) {
  const base::ErrorReason reason = base::ReasonOf(status);
  if (reason != base::ErrorReason::kInvalidFilter) return status;
  const std::string what = fmt::format("filter, {}", std::string(status.message()));
  return request.filter_is_default ? base::Error(reason, what, "options.filter")
                                   : ErrorAt(place, "filter", reason, what);
}

// The rows that the queries of one call may return: rows that are searchable, exist for the call,
// are allowed by it and pass the query's filter. Has a mask for each different filter; the service
// bounds their number. Borrows its arguments and the filters' texts.
class CallMasks {
 public:
  //   allowed  of AllowedRows
  CallMasks(const engine::Snapshot& snapshot, const ExistingItems& items, MaskPtr allowed,
            base::LongWork& work)
      : snapshot_(snapshot),
        work_(work),
        fields_(items.fields()),
        looks_(items.looks()),
        existing_(snapshot.filters->Intersection({"", snapshot.searchable}, items.named_rows())),
        allowed_(std::move(allowed)),
        unfiltered_(Allowed(existing_.rows)) {}

  // Reads a query's filter. Called for all queries before the first filter is evaluated.
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
  // The estimated looks of all filters at rows and keywords.
  std::uint64_t looks() const { return looks_; }

  // The rows of a query without a filter; null for all.
  const MaskPtr& unfiltered() const { return unfiltered_; }
  // The rows of a query with this filter; null for all. REQUIRES: the filter was read.
  // Errors: work's.
  absl::StatusOr<MaskPtr> Of(std::string_view filter) {
    if (filter.empty()) return unfiltered_;
    Filter& known = *by_given_text_.find(filter)->second;
    if (known.mask != nullptr) return known.mask;
    const absl::StatusOr<MaskPtr> passing = snapshot_.filters->Rows(known.filter, work_);
    if (!passing.ok()) return passing;
    // The mask is copied here unless the result is cached, and its rows are counted later.
    absl::Status status = work_.Did(snapshot_.row_count() / 32);
    if (!status.ok()) return status;
    known.mask =
        Allowed(snapshot_.filters->Intersection({known.filter.text, *passing}, existing_).rows);
    known.filter.rows.reset();
    return known.mask;
  }

 private:
  struct Filter {
    filter::PreparedFilter filter;
    MaskPtr mask;  // null until it is evaluated
  };

  // The rows that the call allows, out of `rows`. Not cached like the rows of a filter, because a
  // list of ids has no name.
  MaskPtr Allowed(MaskPtr rows) const {
    if (allowed_ == nullptr) return rows;
    if (rows == nullptr) return allowed_;
    auto both = std::make_shared<RowMask>(*rows);
    both->IntersectWith(*allowed_);
    return both;
  }

  const engine::Snapshot& snapshot_;
  base::LongWork& work_;
  const filter::PayloadView fields_;  // that exist for the caller
  std::uint64_t looks_;
  const filter::NamedRows existing_;
  const MaskPtr allowed_;     // null for all
  const MaskPtr unfiltered_;  // the rows of a query without a filter
  std::map<std::string, Filter> by_canonical_text_;
  std::map<std::string_view, Filter*> by_given_text_;
};

// Inputs that all queries of a call share.
struct CallParts {
  const engine::Snapshot& snapshot;
  const ExistingItems& items;
  OtherItems& others;
  const RowsPtr& shared_exclusions;
  CallMasks& masks;
  GroupedRows& grouped_rows;
  base::LongWork& work;
};

bool IsUnknownId(const absl::Status& status) {
  const base::ErrorReason reason = base::ReasonOf(status);
  return reason == base::ErrorReason::kItemNotFound || reason == base::ErrorReason::kUserNotFound;
}

// Resolves one query of a call, and writes its vectors to the task's matrix.
class Resolver {
 public:
  //   may_offer  the nearest id to an unknown one
  //   row        written: its vectors, [vector_count, padded_dim]
  //   report     added to: what of it has no effect
  Resolver(const CallParts& call, const Place& place, bool may_offer, float* row,
           engine::ResolvedQuery& query, QueryReport& report)
      : call_(call),
        snapshot_(call.snapshot),
        place_(place),
        row_(row),
        query_(query),
        report_(report),
        vectors_(call.snapshot, call.items, call.others, may_offer, call.work) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status = ResolveFilter(request);
    if (status.ok()) status = ResolveRefinement(request);
    if (status.ok()) status = CheckColdStart(request);
    if (status.ok()) status = ResolveTarget(request);
    if (status.ok()) status = ResolveSeen(request);
    if (status.ok()) status = ResolveExclusions(request);
    if (status.ok()) status = NoteRowsWithoutGroup(request);
    if (!status.ok()) return status;
    AddOptionNotes(request, snapshot_.dataset->metric, query_.order.has_value(), report_.notes);
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
    if (ScoresCosines(request)) {
      query_.score_threshold =
          certificate::CosineThreshold(request.score_threshold, snapshot_.dim());
    }
    query_.diversity = request.diversity;
    query_.k = CountWanted(request, snapshot_.row_count());
    if (!request.group_by) return absl::OkStatus();
    auto field = snapshot_.filters->FindGroups(request.group_by->field, call_.items.fields());
    if (!field.ok()) {
      const base::ErrorReason reason = base::ReasonOf(field.status());
      const std::string what = fmt::format("group_by: {}", std::string(field.status().message()));
      return request.group_by_is_default ? base::Error(reason, what, "options.group_by.field")
                                         : ErrorAt(place_, "group_by.field", reason, what);
    }
    query_.k = CountWanted(request, field->group_count());
    query_.grouping = {*std::move(field), request.group_by->group_size};
    return absl::OkStatus();
  }

  // Refuses a field that rows cannot be ordered by, even when this query does not need the order.
  // So a mistake shows before the first user without a profile.
  absl::Status CheckColdStart(const QueryRequest& request) const {
    if (!request.cold_start || request.cold_start->field.empty()) return absl::OkStatus();
    return Order(*request.cold_start).status();
  }

  // Whether the scores are cosines; false for dot products and for scores of a strategy.
  bool ScoresCosines(const QueryRequest& request) const {
    const auto* const examples = std::get_if<ByExamples>(&request.target);
    return snapshot_.dataset->metric == Metric::kCosine &&
           (examples == nullptr || examples->strategy == Strategy::kAverageVector);
  }

  // offset + k, at most count_max: the rows or groups that exist.
  static std::uint32_t CountWanted(const QueryRequest& request, std::size_t count_max) {
    const std::uint64_t wanted = std::uint64_t{request.offset} + request.k;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, count_max));
  }

  absl::Status ResolveTarget(const QueryRequest& request) {
    if (IsColdStart(snapshot_, call_.items.users(), request))
      return ResolveColdStart(*request.cold_start);
    return std::visit([this](const auto& target) { return BuildVectors(target); }, request.target);
  }

  // Counts the rows that the user has seen, and leaves them out when the query asks for it, also in
  // a cold start.
  absl::Status ResolveSeen(const QueryRequest& request) {
    const auto* user = std::get_if<ByUser>(&request.target);
    if (const auto* const blend = std::get_if<ByBlend>(&request.target)) user = &blend->user;
    if (user == nullptr) return absl::OkStatus();
    const std::span<const Row> seen = call_.items.SeenBy(user->id);
    absl::Status status =
        call_.work.Did(seen.size() * (user->exclude_seen ? kSeenRowNs : kSeenRowCountedNs));
    if (!status.ok()) return status;
    report_.seen_count = call_.items.SeenCount(seen);
    if (!user->exclude_seen) return absl::OkStatus();
    query_.excluded_rows.insert(query_.excluded_rows.end(), seen.begin(), seen.end());
    if (report_.seen_count > 0) return absl::OkStatus();
    report_.notes.emplace_back("exclude_seen has no effect: no interactions of the user are known");
    return absl::OkStatus();
  }

  // Notes how many rows pass but are in no group.
  absl::Status NoteRowsWithoutGroup(const QueryRequest& request) {
    if (!request.group_by) return absl::OkStatus();
    const auto counts = call_.grouped_rows.Count(request.group_by->field, query_.grouping->field,
                                                 query_.mask.get(), query_.excluded(), call_.work);
    if (!counts.ok()) return counts.status();
    if (counts->without_group == 0) return absl::OkStatus();
    const bool one = counts->without_group == 1;
    report_.notes.push_back(fmt::format(
        "group_by: {} of {} that can be returned {} no {} and {} in no group",
        base::Grouped(counts->without_group), base::Counted(counts->rows, "row"),
        one ? "has" : "have", filter::FieldText(request.group_by->field), one ? "is" : "are"));
    return absl::OkStatus();
  }

  absl::Status ResolveExclusions(const QueryRequest& request) {
    std::vector<Row>& excluded = query_.excluded_rows;
    absl::Status status = AddRows(call_.items, {"exclude_ids", "exclude"}, request.exclude_ids,
                                  call_.work, excluded, report_.notes);
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
    query_.diversity.reset();  // diversity needs scores
    return absl::OkStatus();
  }

  absl::StatusOr<engine::RowOrder> Order(const ColdStart& cold_start) const {
    return MakeRowOrder(snapshot_, cold_start, call_.items, call_.work);
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
  QueryReport& report_;
  const VectorBuilder vectors_;
};

// Resolves the queries of a call that are not refused: first counts them, then reads their filters,
// then resolves one after the other. Borrows its arguments.
class CallResolver {
 public:
  CallResolver(const engine::Snapshot& snapshot, std::span<const QueryRequest> requests,
               const CallOptions& options, base::LongWork& work, engine::SearchTask& task,
               CallReport& report)
      : snapshot_(snapshot),
        requests_(requests),
        options_(options),
        work_(work),
        task_(task),
        report_(report),
        others_(snapshot, options.others, work) {}

  absl::Status Resolve() {
    const auto items = ExistingItems::Create(snapshot_, options_.required_filters,
                                             "options.required_filter", work_);
    if (!items.ok()) return items.status();
    absl::StatusOr<MaskPtr> allowed =
        AllowedRows(*items, snapshot_.row_count(), options_.allow_ids, work_, report_.notes);
    if (!allowed.ok()) return allowed.status();
    CallMasks masks(snapshot_, *items, *std::move(allowed), work_);
    report_.unfiltered = masks.unfiltered();
    absl::Status status = ReadFilters(*items, masks);
    if (!status.ok()) return status;
    const auto shared_exclusions =
        SharedExclusions(*items, options_.exclude_ids, work_, report_.notes);
    if (!shared_exclusions.ok()) return shared_exclusions.status();
    GroupedRows grouped_rows(snapshot_);
    status =
        ResolveEach({snapshot_, *items, others_, *shared_exclusions, masks, grouped_rows, work_});
    if (status.ok()) NoteColdStart();
    return status;
  }

 private:
  // In a partial call a query gets the messages that it would get alone.
  Place MakePlace(std::size_t index) const {
    return {.list = options_.list,
            .index = options_.first_index + index,
            .alone = options_.partial || requests_.size() == 1,
            .part = {}};
  }

  // Whether an error concerns one query only, so that the other queries can be answered.
  bool IsOfOneQuery(const absl::Status& error) const {
    return base::FieldOf(error).starts_with(fmt::format("{}[", options_.list));
  }

  // Refuses a query with its error in a partial call.
  // Errors: the error itself, when it makes the whole call fail.
  absl::Status Refuse(std::size_t index, absl::Status error, const ExistingItems& items) {
    if (IsUnknownId(error)) {
      error = NameAllUnknown(error, options_.partial ? requests_.subspan(index, 1) : requests_,
                             items, others_, snapshot_.collection);
    }
    if (!options_.partial || !IsOfOneQuery(error)) return error;
    report_.queries[index] = {std::move(error), {}, 0};
    return absl::OkStatus();
  }

  absl::Status ReadFilters(const ExistingItems& items, CallMasks& masks) {
    for (std::size_t index = 0; index < requests_.size(); ++index) {
      if (!report_.queries[index].status.ok()) continue;
      absl::Status status = masks.Read(requests_[index].filter);
      if (status.ok()) continue;
      status = Refuse(index, FilterError(status, requests_[index], MakePlace(index)), items);
      if (!status.ok()) return status;
    }
    const absl::Status within = snapshot_.filters->CheckLooks(masks.looks(), items.fields());
    if (within.ok()) return within;
    return base::Error(base::ReasonOf(within), std::string(within.message()), options_.list);
  }

  absl::Status ResolveEach(const CallParts& call) {
    absl::Status status = MakeSpace();
    if (!status.ok()) return status;
    std::uint64_t offers_left = OffersMax(snapshot_, options_.others);
    float* row = task_.vectors.row_count() == 0 ? nullptr : task_.vectors.MutableRow(0);
    std::size_t vector_count = 0;
    for (std::size_t index = 0; index < requests_.size(); ++index) {
      QueryReport& report = report_.queries[index];
      if (!report.status.ok()) continue;
      engine::ResolvedQuery query;
      query.vector_count =
          VectorCount(snapshot_, options_.required_filters.users, requests_[index]);
      status = Resolver(call, MakePlace(index), offers_left > 0, row, query, report)
                   .Resolve(requests_[index]);
      if (status.ok()) status = report.past_reach;
      if (!status.ok()) {
        if (IsUnknownId(status) && offers_left > 0) --offers_left;
        status = Refuse(index, std::move(status), call.items);
        if (!status.ok()) return status;
        continue;
      }
      vector_count += query.vector_count;
      if (row != nullptr) row += query.vector_count * PaddedDim(snapshot_.dim());
      task_.queries.push_back(std::move(query));
    }
    return KeepVectors(vector_count);
  }

  // Allocates the vectors of all queries that are not refused yet.
  absl::Status MakeSpace() {
    task_.queries.clear();
    task_.queries.reserve(requests_.size());
    std::size_t vector_count = 0;
    for (std::size_t index = 0; index < requests_.size(); ++index) {
      if (!report_.queries[index].status.ok()) continue;
      vector_count += VectorCount(snapshot_, options_.required_filters.users, requests_[index]);
    }
    absl::StatusOr<data::Matrix> vectors = data::Matrix::Create(vector_count, snapshot_.dim());
    if (!vectors.ok()) return vectors.status();
    task_.vectors = *std::move(vectors);
    return absl::OkStatus();
  }

  // Keeps the first vectors and drops the space of queries that were refused later.
  absl::Status KeepVectors(std::size_t vector_count) {
    if (task_.vectors.row_count() == vector_count) return absl::OkStatus();
    absl::StatusOr<data::Matrix> kept = data::Matrix::Create(vector_count, snapshot_.dim());
    if (!kept.ok()) return kept.status();
    if (vector_count > 0) {
      std::copy_n(task_.vectors.view().data(), vector_count * PaddedDim(snapshot_.dim()),
                  kept->MutableRow(0));
    }
    task_.vectors = *std::move(kept);
    return absl::OkStatus();
  }

  void NoteColdStart() {
    bool asked = false;
    for (std::size_t index = 0; index < requests_.size(); ++index) {
      if (!report_.queries[index].status.ok() || !requests_[index].cold_start) continue;
      asked = asked || std::holds_alternative<ByUser>(requests_[index].target);
    }
    const bool needed = std::ranges::any_of(
        task_.queries, [](const auto& query) { return query.order.has_value(); });
    if (!asked || needed) return;
    report_.notes.emplace_back("options.cold_start has no effect: every user has a profile");
  }

  const engine::Snapshot& snapshot_;
  const std::span<const QueryRequest> requests_;
  const CallOptions& options_;
  base::LongWork& work_;
  engine::SearchTask& task_;
  CallReport& report_;
  OtherItems others_;
};

}  // namespace

absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const CallOptions& options,
                            base::LongWork& work, engine::SearchTask& task, CallReport& report) {
  assert(report.queries.size() == requests.size());
  return CallResolver(snapshot, requests, options, work, task, report).Resolve();
}

}  // namespace simile::engine
