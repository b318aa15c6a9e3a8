#include "service/requests/validate_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <absl/strings/string_view.h>
#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/requests/page_token.h"
#include "service/requests/request_fields.h"
#include "service/requests/validate_query.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr std::uint32_t kDefaultK = 10;
constexpr FieldPath kOptions{"options"};
constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

// Checks the fields that a query and the options share: k, score_threshold, filter, exclude_ids.
//   path  "queries[3]" or "options"
template <class Message>
absl::Status CheckSharedFields(const FieldPath& path, const Message& message,
                               const Limits& limits) {
  if (message.has_k()) {
    absl::Status status = CheckK({"k", &path}, message.k(), limits);
    if (!status.ok()) return status;
  }
  if (message.has_score_threshold()) {
    absl::Status status =
        CheckScoreThreshold({"score_threshold", &path}, message.score_threshold());
    if (!status.ok()) return status;
  }
  // Checked before it is copied for every query.
  absl::Status status = CheckFilterSize({"filter", &path}, message.filter(), limits);
  if (!status.ok()) return status;
  if (static_cast<std::uint32_t>(message.exclude_ids_size()) > limits.excluded_ids_max) {
    return Refuse({"exclude_ids", &path},
                  "{} given; at most {} in the options' list, and in the list of each query",
                  base::Counted(static_cast<std::uint64_t>(message.exclude_ids_size()), "id"),
                  base::Grouped(limits.excluded_ids_max));
  }
  for (int index = 0; index < message.exclude_ids_size(); ++index) {
    status = CheckId({"exclude_ids", &path, index}, message.exclude_ids(index), limits);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ReceiptDetail> ValidReceiptDetail(const v1::SearchOptions& options) {
  switch (options.receipt_detail()) {
    case v1::RECEIPT_DETAIL_UNSPECIFIED:
    case v1::RECEIPT_DETAIL_FULL:
      return ReceiptDetail::kFull;
    case v1::RECEIPT_DETAIL_BRIEF:
      return ReceiptDetail::kBrief;
    case v1::RECEIPT_DETAIL_TIMED:
      return ReceiptDetail::kTimed;
    default:
      return RefuseEnum({"receipt_detail", &kOptions}, options.receipt_detail(),
                        "RECEIPT_DETAIL_FULL, RECEIPT_DETAIL_BRIEF or RECEIPT_DETAIL_TIMED");
  }
}

absl::StatusOr<engine::Priority> ValidPriority(const v1::SearchOptions& options) {
  const v1::Priority priority = options.priority();
  if (!v1::Priority_IsValid(priority)) {
    return RefuseEnum({"priority", &kOptions}, priority, "PRIORITY_ONLINE or PRIORITY_BULK");
  }
  return priority == v1::PRIORITY_BULK ? engine::Priority::kBulk : engine::Priority::kOnline;
}

absl::StatusOr<bool> WantsColumns(const v1::SearchOptions& options) {
  if (!v1::Layout_IsValid(options.layout())) {
    return RefuseEnum({"layout", &kOptions}, options.layout(), "LAYOUT_HITS or LAYOUT_COLUMNS");
  }
  return options.layout() == v1::LAYOUT_COLUMNS;
}

// The values that the options set for every query, without the excluded ids. Offset and k are
// checked together for each query, since either may come from the options.
// for each query, since either may come from the options.
absl::StatusOr<engine::QueryRequest> ValidDefaults(const v1::SearchOptions& options,
                                                   const Limits& limits) {
  engine::QueryRequest query;
  query.k = options.has_k() ? options.k() : kDefaultK;
  query.offset = options.offset();
  query.score_threshold = options.has_score_threshold() ? options.score_threshold() : kNoThreshold;
  query.filter = options.filter();
  query.filter_is_default = true;
  if (!options.has_cold_start()) return query;
  auto cold_start = ValidateColdStart({"cold_start", &kOptions}, options.cold_start(), limits);
  if (!cold_start.ok()) return cold_start.status();
  query.cold_start = *std::move(cold_start);
  return query;
}

//   list  the request's queries or user_ids
absl::Status CheckExclusionCount(const FieldPath& list, std::uint64_t query_count,
                                 std::uint64_t shared_count, std::uint64_t own_count,
                                 const Limits& limits) {
  const std::uint64_t count = query_count * shared_count + own_count;
  if (count <= limits.exclusions_per_call_max) return absl::OkStatus();
  return Refuse(
      list,
      "{} exclusions, the ids of the options counted once for each of {}; a call may have {}: "
      "send fewer queries a call or exclude fewer ids",
      base::Grouped(count), query_count == 1 ? "1 query" : base::Grouped(query_count) + " queries",
      base::Grouped(limits.exclusions_per_call_max));
}

absl::Status CheckAllowedIds(const v1::ItemIds& allowed, const Limits& limits) {
  if (static_cast<std::uint32_t>(allowed.ids_size()) > limits.allowed_ids_max) {
    return Refuse({"allow_ids.ids", &kOptions},
                  "{} given; at most {}. To allow more, mark the items with a payload field and "
                  "filter by it",
                  base::Counted(static_cast<std::uint64_t>(allowed.ids_size()), "id"),
                  base::Grouped(limits.allowed_ids_max));
  }
  for (int index = 0; index < allowed.ids_size(); ++index) {
    absl::Status status = CheckId({"allow_ids.ids", &kOptions, index}, allowed.ids(index), limits);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Sets diversity or group_by: the query's own, or else the options'.
//   own  the query, or the options for Recommend
template <class Message>
absl::Status SetRefinement(const FieldPath& path, const Message& own,
                           const v1::SearchOptions& options, const Limits& limits,
                           engine::QueryRequest& query) {
  const bool has_own = own.has_diversity() || own.has_group_by();
  const auto set = [&](const FieldPath& at, const auto& from) -> absl::Status {
    if (from.has_diversity() && from.has_group_by()) {
      return Refuse(at, "diversity and group_by are both set; set only one of them");
    }
    if (from.has_diversity()) {
      auto diversity = ValidateDiversity({"diversity", &at}, from.diversity(), query.k, limits);
      if (!diversity.ok()) return diversity.status();
      query.diversity = *diversity;
    }
    if (from.has_group_by()) {
      auto group_by = ValidateGroupBy({"group_by", &at}, from.group_by(), limits);
      if (!group_by.ok()) return group_by.status();
      query.group_by = *std::move(group_by);
      query.group_by_is_default = &at == &kOptions;
    }
    return absl::OkStatus();
  };
  return has_own ? set(path, own) : set(kOptions, options);
}

// Adds the pages before the requested one to the offset, and checks that the page is within bounds.
//   past_reach  set to the error of a page beyond them
// Errors: those of the first page.
absl::Status SetOffset(const FieldPath& path, const Paging& paging, const Limits& limits,
                       engine::QueryRequest& query, absl::Status& past_reach) {
  absl::Status status = CheckReach(path, query.offset, query, limits);
  if (!status.ok() || !paging.token) return status;
  // Every page from k_max on is out of reach, and the product below must not overflow.
  const std::uint64_t page = std::min<std::uint64_t>(paging.token->page, limits.k_max);
  const std::uint64_t skipped = query.offset + page * query.k;
  past_reach = CheckReach(path, skipped, query, limits);
  if (past_reach.ok()) query.offset = static_cast<std::uint32_t>(skipped);
  return absl::OkStatus();
}

// How many vectors a query counts as: one for each example, or one.
std::uint64_t VectorCount(const engine::QueryRequest& query) {
  const auto* const examples = std::get_if<engine::ByExamples>(&query.target);
  return examples == nullptr ? 1 : examples->positive.size() + examples->negative.size();
}

// Checks the bounds on all queries of a call together.
//   list  the request's queries or user_ids
absl::Status CheckTotals(const FieldPath& list, const ValidSearch& search, const Limits& limits) {
  const std::vector<engine::QueryRequest>& queries = search.queries;
  std::uint64_t vectors = 0;
  std::uint64_t pairs = 0;
  std::uint64_t group_rows = 0;
  for (std::size_t index = 0; index < queries.size(); ++index) {
    if (!search.report.queries[index].status.ok()) continue;
    const engine::QueryRequest& query = queries[index];
    const std::uint64_t last = std::uint64_t{query.offset} + query.k;
    vectors += VectorCount(query);
    if (query.diversity) pairs += query.diversity->candidates * last;
    if (query.group_by) group_rows += query.group_by->group_size * last;
  }
  if (vectors > queries.size() && vectors > limits.vectors_per_call_max) {
    return Refuse(list, "{} vectors, each example counted; a call may have {}",
                  base::Grouped(vectors), base::Grouped(limits.vectors_per_call_max));
  }
  if (group_rows > limits.group_rows_per_call_max) {
    return Refuse(list,
                  "{} rows of groups, groups times rows of each; a call may have {}: send fewer "
                  "queries, or ask for fewer or smaller groups",
                  base::Grouped(group_rows), base::Grouped(limits.group_rows_per_call_max));
  }
  if (pairs > limits.diversity_pairs_per_call_max) {
    return Refuse(list,
                  "{} pairs of rows to compare for diversity; a call may have {}: send fewer "
                  "queries, or ask for fewer candidates or a smaller k",
                  base::Grouped(pairs), base::Grouped(limits.diversity_pairs_per_call_max));
  }
  return absl::OkStatus();
}

absl::Status RefuseToken() {
  return RefuseFor(base::ErrorReason::kInvalidPageToken, {"page_token", &kOptions},
                   "it belongs to another request; repeat the request that returned it, with this "
                   "token added");
}

// Hashes the request with its vectors. Vector data that the message lacks is put into a copy of the
// message.
std::uint64_t HashWhole(const v1::RecommendRequest& request, const SentVectors& /*none*/) {
  return HashRequest(request);
}
std::uint64_t HashWhole(const v1::SearchRequest& request, const SentVectors& vectors) {
  if (vectors.empty()) return HashRequest(request);
  v1::SearchRequest whole = request;
  for (int index = 0; index < whole.queries_size(); ++index) {
    const std::string_view data = vectors.Data(static_cast<std::size_t>(index));
    if (data.empty()) continue;
    whole.mutable_queries(index)->mutable_packed_vector()->set_data(data.data(), data.size());
  }
  return HashRequest(whole);
}

// What the options say about pages.
//   request  SearchRequest or RecommendRequest
template <class Request>
absl::StatusOr<Paging> ValidatePaging(const Request& request, const SentVectors& vectors) {
  const v1::SearchOptions& options = request.options();
  Paging paging;
  paging.wanted = options.paged() || !options.page_token().empty();
  if (!paging.wanted) return paging;
  paging.request_hash = HashWhole(request, vectors);
  if (options.page_token().empty()) return paging;
  absl::StatusOr<PageToken> token = ReadPageToken(options.page_token());
  if (!token.ok()) return token.status();
  if (token->request_hash != paging.request_hash) return RefuseToken();
  paging.token = *token;
  return paging;
}

//   past_reach  set to the error of a page beyond the query's bounds
absl::StatusOr<engine::QueryRequest> ValidateQuery(const FieldPath& path, const v1::Query& from,
                                                   std::string_view sent_data,
                                                   const v1::SearchRequest& request,
                                                   const engine::QueryRequest& defaults,
                                                   const Paging& paging, const Limits& limits,
                                                   absl::Status& past_reach) {
  const v1::SearchOptions& options = request.options();
  absl::Status status = CheckSharedFields(path, from, limits);
  if (!status.ok()) return status;
  engine::QueryRequest query = defaults;
  if (from.has_k()) query.k = from.k();
  if (from.has_offset()) query.offset = from.offset();
  if (from.has_score_threshold()) query.score_threshold = from.score_threshold();
  if (from.has_filter()) {
    query.filter = from.filter();
    query.filter_is_default = false;
  }
  query.exclude_ids.assign(from.exclude_ids().begin(), from.exclude_ids().end());
  status = SetRefinement(path, from, options, limits, query);
  if (status.ok()) status = SetOffset(path, paging, limits, query, past_reach);
  if (!status.ok()) return status;
  const bool exclude_seen = from.has_exclude_seen() ? from.exclude_seen() : options.exclude_seen();
  status = SetTarget(path, from, sent_data, request.collection(), exclude_seen, limits, query);
  if (!status.ok()) return status;
  return query;
}

// Estimates the memory of a request, bytes: its arena, and its texts outside of the arena. Does not
// walk the message by reflection, which takes longer than a small search.
template <class Request>
std::uint64_t EstimateMemory(const Request& request) {
  const google::protobuf::Arena* const arena = request.GetArena();
  return arena == nullptr ? request.SpaceUsedLong() : arena->SpaceUsed() + request.ByteSizeLong();
}

// Validates what Search and Recommend requests share, which is all but the queries, and reserves
// space for the queries.
//   field           the request's queries or user_ids
//   own_exclusions  ids that single queries exclude
template <class Request>
absl::StatusOr<ValidSearch> ValidateCommon(const Request& request, const FieldPath& field,
                                           int field_size, std::uint64_t own_exclusions,
                                           const SentVectors& vectors, const Limits& limits) {
  const v1::SearchOptions& options = request.options();
  const auto query_count = static_cast<std::uint64_t>(field_size);
  absl::Status status = CheckCollectionName({"collection"}, request.collection(), limits);
  status.Update(CheckCount(field, query_count, limits.queries_per_call_max));
  if (status.ok()) status = CheckSharedFields(kOptions, options, limits);
  status.Update(CheckExclusionCount(field, query_count,
                                    static_cast<std::uint64_t>(options.exclude_ids_size()),
                                    own_exclusions, limits));
  if (!status.ok()) return status;
  status = CheckAllowedIds(options.allow_ids(), limits);
  if (!status.ok()) return status;
  const auto answer = ValidateAnswerOptions(&kOptions, options, limits);
  if (!answer.ok()) return answer.status();
  const auto receipt = ValidReceiptDetail(options);
  if (!receipt.ok()) return receipt.status();
  const auto priority = ValidPriority(options);
  if (!priority.ok()) return priority.status();
  const auto as_columns = WantsColumns(options);
  if (!as_columns.ok()) return as_columns.status();
  absl::StatusOr<Paging> paging = ValidatePaging(request, vectors);
  if (!paging.ok()) return paging.status();
  ValidSearch valid;
  valid.exclude_ids = {options.exclude_ids().begin(), options.exclude_ids().end()};
  if (options.has_allow_ids()) {
    const auto& ids = options.allow_ids().ids();
    valid.allow_ids.emplace(ids.begin(), ids.end());
  }
  valid.answer = *answer;
  valid.as_columns = *as_columns;
  valid.receipt = *receipt;
  valid.priority = *priority;
  valid.paging = *std::move(paging);
  valid.partial = options.partial();
  valid.request_bytes = EstimateMemory(request) + vectors.held_bytes();
  valid.queries.reserve(query_count);
  valid.report.queries.resize(query_count);
  return valid;
}

// The path of a query, as its errors name it. The errors of a partial call are worded as if the
// query were alone.
//   list  "queries" or "user_ids"
FieldPath MakePath(std::string_view list, int index, bool partial) {
  return {list, nullptr, partial ? 0 : index};
}

// Whether an error is of the query itself and not of the options.
bool IsOfQuery(const absl::Status& error, const FieldPath& path) {
  return base::FieldOf(error).starts_with(fmt::format("{}", path));
}

// The error of one query of a partial call, with the field of this call.
// REQUIRES: IsOfQuery(error, path).
absl::Status WithOwnField(absl::Status error, const FieldPath& path, int index) {
  const FieldPath own{path.name, nullptr, index};
  const std::string rest = base::FieldOf(error).substr(fmt::format("{}", path).size());
  return base::WithField(std::move(error), fmt::format("{}{}", own, rest));
}

// Refuses one query. A partial call gets an empty query with the error, whose field is the query's
// own. Returns the error if it fails the call: if the call is not partial, or the options are
// wrong.
absl::Status RefuseQuery(absl::Status error, const FieldPath& path, int index, ValidSearch& valid) {
  if (!valid.partial || !IsOfQuery(error, path)) return error;
  valid.report.queries[valid.queries.size()].status = WithOwnField(std::move(error), path, index);
  valid.queries.emplace_back();
  return absl::OkStatus();
}

// Adds the other collections whose items a query names.
absl::Status AddItemCollections(const engine::QueryRequest& query, const Limits& limits,
                                std::vector<std::string>& collections) {
  const std::size_t most = limits.item_collections_per_call_max;
  const auto add = [&](const auto& target) {
    const auto* const item = std::get_if<engine::ByOtherItem>(&target);
    if (item == nullptr || collections.size() > most) return;
    if (std::ranges::find(collections, item->collection) != collections.end()) return;
    collections.push_back(item->collection);
  };
  add(query.target);
  if (const auto* const blend = std::get_if<engine::ByBlend>(&query.target)) {
    add(blend->target);
  } else if (const auto* const examples = std::get_if<engine::ByExamples>(&query.target)) {
    for (const engine::Example& example : examples->positive) add(example.target);
    for (const engine::Example& example : examples->negative) add(example.target);
  }
  if (collections.size() <= most) return absl::OkStatus();
  return Refuse({"queries"},
                "they name items of more than {} other collections; send them in several calls",
                base::Grouped(most));
}

// An option that every query replaces by its own has no effect.
struct SharedOption {
  std::string_view name;
  bool (*set)(const v1::SearchOptions& options);
  bool (*replaced)(const v1::Query& query);
};
constexpr std::array kSharedOptions{
    SharedOption{"k", [](const v1::SearchOptions& options) { return options.has_k(); },
                 [](const v1::Query& query) { return query.has_k(); }},
    SharedOption{"score_threshold",
                 [](const v1::SearchOptions& options) { return options.has_score_threshold(); },
                 [](const v1::Query& query) { return query.has_score_threshold(); }},
    SharedOption{"offset", [](const v1::SearchOptions& options) { return options.has_offset(); },
                 [](const v1::Query& query) { return query.has_offset(); }},
    SharedOption{"filter", [](const v1::SearchOptions& options) { return options.has_filter(); },
                 [](const v1::Query& query) { return query.has_filter(); }},
    SharedOption{
        "diversity", [](const v1::SearchOptions& options) { return options.has_diversity(); },
        [](const v1::Query& query) { return query.has_diversity() || query.has_group_by(); }},
    SharedOption{
        "group_by", [](const v1::SearchOptions& options) { return options.has_group_by(); },
        [](const v1::Query& query) { return query.has_diversity() || query.has_group_by(); }},
};

bool IsOfAUser(const v1::Query& query) { return query.has_user_id() || query.has_blend(); }

// Adds notes on the options that no query takes.
void NoteUnusedOptions(const v1::SearchRequest& request, std::vector<std::string>& notes) {
  const v1::SearchOptions& options = request.options();
  const auto& queries = request.queries();
  for (const SharedOption& option : kSharedOptions) {
    if (!option.set(options) || !std::ranges::all_of(queries, option.replaced)) continue;
    notes.push_back(fmt::format("options.{} has no effect: every query sets its own", option.name));
  }
  if (options.exclude_seen() && std::ranges::none_of(queries, IsOfAUser)) {
    notes.emplace_back("options.exclude_seen has no effect: no query is by user_id or blend");
  } else if (options.exclude_seen() && std::ranges::all_of(queries, [](const v1::Query& query) {
               return !IsOfAUser(query) || query.has_exclude_seen();
             })) {
    notes.emplace_back(
        "options.exclude_seen has no effect: every query by user_id or blend sets its own");
  }
  if (options.has_cold_start() && std::ranges::none_of(queries, &v1::Query::has_user_id)) {
    notes.emplace_back("options.cold_start has no effect: no query is by user_id");
  }
}

}  // namespace

absl::StatusOr<ValidSearch> ValidateSearch(const v1::SearchRequest& request, const Limits& limits,
                                           const SentVectors& vectors) {
  const v1::SearchOptions& options = request.options();
  std::uint64_t own_exclusions = 0;
  for (const v1::Query& query : request.queries()) {
    own_exclusions += static_cast<std::uint64_t>(query.exclude_ids_size());
  }
  auto valid =
      ValidateCommon(request, {"queries"}, request.queries_size(), own_exclusions, vectors, limits);
  if (!valid.ok()) return valid;
  const auto defaults = ValidDefaults(options, limits);
  if (!defaults.ok()) return defaults.status();
  std::set<std::string_view> filters;  // of valid->queries, which do not move
  for (int index = 0; index < request.queries_size(); ++index) {
    const FieldPath path = MakePath("queries", index, valid->partial);
    absl::Status past_reach;
    auto query =
        ValidateQuery(path, request.queries(index), vectors.Data(static_cast<std::size_t>(index)),
                      request, *defaults, valid->paging, limits, past_reach);
    if (query.ok() && !past_reach.ok()) {
      if (!valid->partial) return past_reach;
      // If this query could be answered, the pages would have ended before this one. So the query
      // has another error, which is the same on every page.
      valid->report.queries[valid->queries.size()].past_reach =
          WithOwnField(std::move(past_reach), path, index);
    }
    if (!query.ok()) {
      absl::Status status = RefuseQuery(query.status(), path, index, *valid);
      if (!status.ok()) return status;
      continue;
    }
    valid->queries.push_back(*std::move(query));
    absl::Status named = AddItemCollections(valid->queries.back(), limits, valid->item_collections);
    if (!named.ok()) return named;
    filters.insert(valid->queries.back().filter);
    if (filters.size() > limits.filters_per_call_max) {
      const FieldPath own{"queries", nullptr, index};
      return Refuse({"filter", &own}, "one too many; a call may have {} different filters",
                    base::Grouped(limits.filters_per_call_max));
    }
  }
  if (absl::Status status = CheckTotals({"queries"}, *valid, limits); !status.ok()) return status;
  const std::optional<PageToken>& token = valid->paging.token;
  if (token && token->item_snapshot_ids.size() != valid->item_collections.size()) {
    return RefuseToken();
  }
  NoteUnusedOptions(request, valid->report.notes);
  return valid;
}

absl::StatusOr<ValidSearch> ValidateRecommend(const v1::RecommendRequest& request,
                                              const Limits& limits) {
  const v1::SearchOptions& options = request.options();
  auto valid = ValidateCommon(request, {"user_ids"}, request.user_ids_size(), 0, {}, limits);
  if (!valid.ok()) return valid;
  auto query = ValidDefaults(options, limits);
  if (!query.ok()) return query.status();
  absl::Status status = SetRefinement(kOptions, options, options, limits, *query);
  absl::Status past_reach;
  if (status.ok()) status = SetOffset(kOptions, valid->paging, limits, *query, past_reach);
  status.Update(past_reach);
  for (int index = 0; status.ok() && index < request.user_ids_size(); ++index) {
    const FieldPath path = MakePath("user_ids", index, valid->partial);
    status = CheckId(path, request.user_ids(index), limits);
    if (status.ok()) {
      query->target = engine::ByUser{request.user_ids(index), options.exclude_seen(), {}};
      valid->queries.push_back(*query);
    } else {
      status = RefuseQuery(status, path, index, *valid);
    }
  }
  if (status.ok()) status = CheckTotals({"user_ids"}, *valid, limits);
  if (!status.ok()) return status;
  return valid;
}

absl::StatusOr<ValidSearch> ValidateExplain(const v1::ExplainRequest& request,
                                            const Limits& limits) {
  using Kind = v1::ExplainRequest;
  if (request.request_case() == Kind::REQUEST_NOT_SET) {
    return Refuse({"request"}, "not set; set search or recommend");
  }
  absl::Status status =
      CheckCount({"ids"}, static_cast<std::uint64_t>(request.ids_size()), limits.explained_ids_max);
  for (int index = 0; status.ok() && index < request.ids_size(); ++index) {
    status = CheckId({"ids", nullptr, index}, request.ids(index), limits);
  }
  if (!status.ok()) return status;
  auto valid = request.has_search() ? ValidateSearch(request.search(), limits)
                                    : ValidateRecommend(request.recommend(), limits);
  if (!valid.ok()) return valid;
  const std::size_t index = request.query_index();
  const std::size_t count = valid->queries.size();
  if (index >= count) {
    return Refuse({"query_index"}, "{}; the request has {}, from 0", index,
                  base::Counted(count, "query"));
  }
  const engine::QueryReport& report = valid->report.queries[index];
  if (!report.status.ok()) return report.status;
  if (!report.past_reach.ok()) return report.past_reach;
  valid->queries = {valid->queries[index]};
  valid->report.queries = {report};
  valid->query_index = index;
  valid->partial = false;
  valid->paging.wanted = false;
  valid->explained_ids = {request.ids().begin(), request.ids().end()};
  return valid;
}

}  // namespace simile::service
