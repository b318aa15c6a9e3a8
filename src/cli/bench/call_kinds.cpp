#include "cli/bench/call_kinds.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/wire_names.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

using std::string_view_literals::operator""sv;  // NOLINT(misc-unused-using-decls): it is used

const std::vector<float>& AnyVector(const QuerySamples& samples, RandomDraw& random) {
  return samples.query_vectors[random.Below(samples.query_vectors.size())];
}

const std::string& AnyId(const QuerySamples& samples, RandomDraw& random) {
  return samples.rows[random.Below(samples.rows.size())].id;
}

const std::string& AnyUser(const QuerySamples& samples, RandomDraw& random) {
  return samples.users[random.Below(samples.users.size())].id;
}

// Packs a vector as bytes, the form that a client with vectors in memory sends with one copy.
v1::PackedVector Pack(const std::vector<float>& vector) {
  v1::PackedVector packed;
  packed.set_format(v1::PackedVector::FORMAT_F32_LE);
  packed.set_data(vector.data(), vector.size() * sizeof(float));
  return packed;
}

void SetVector(const CallSpec&, const QuerySamples& samples, RandomDraw& random, v1::Query& query) {
  *query.mutable_packed_vector() = Pack(AnyVector(samples, random));
}

void SetId(const CallSpec&, const QuerySamples& samples, RandomDraw& random, v1::Query& query) {
  query.set_id(AnyId(samples, random));
}

void SetUser(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
             v1::Query& query) {
  query.set_user_id(AnyUser(samples, random));
  if (spec.exclude_seen) query.set_exclude_seen(true);
}

void SetNothing(const CallSpec&, const QuerySamples&, RandomDraw&, v1::Query&) {}

void SetExamples(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
                 v1::Query& query) {
  v1::Examples& examples = *query.mutable_examples();
  for (std::uint32_t i = 0; i < spec.positive; ++i) {
    examples.add_positive()->set_id(AnyId(samples, random));
  }
  for (std::uint32_t i = 0; i < spec.negative; ++i) {
    examples.add_negative()->set_id(AnyId(samples, random));
  }
  examples.set_strategy(*ParseStrategy(spec.strategy));
}

void SetBlend(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
              v1::Query& query) {
  *query.mutable_blend()->mutable_packed_vector() = Pack(AnyVector(samples, random));
  query.mutable_blend()->set_user_id(AnyUser(samples, random));
  if (spec.user_weight) {
    query.mutable_blend()->set_user_weight(static_cast<float>(*spec.user_weight));
  }
  if (spec.exclude_seen) query.set_exclude_seen(true);
}

void SetGroups(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
               v1::Query& query) {
  SetVector(spec, samples, random, query);
  query.mutable_group_by()->set_field(spec.field.empty() ? samples.group_field : spec.field);
  if (spec.group_size) query.mutable_group_by()->set_group_size(*spec.group_size);
}

void SetDiversity(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
                  v1::Query& query) {
  SetVector(spec, samples, random, query);
  v1::Diversity& diversity = *query.mutable_diversity();
  if (spec.lambda) diversity.set_lambda(static_cast<float>(*spec.lambda));
  if (spec.candidates) diversity.set_candidates(*spec.candidates);
}

constexpr std::array kUserKeys = {"exclude_seen"sv, "cold_start"sv};
constexpr std::array kExampleKeys = {"positive"sv, "negative"sv, "strategy"sv};
constexpr std::array kBlendKeys = {"user_weight"sv, "exclude_seen"sv};
constexpr std::array kGroupKeys = {"field"sv, "group_size"sv};
constexpr std::array kDiversityKeys = {"lambda"sv, "candidates"sv};

constexpr KindNeeds kVectors{.query_vectors = true};
constexpr KindNeeds kItemIds{.ids = true};
constexpr KindNeeds kUserIds{.users = true};
constexpr KindNeeds kVectorsAndFilters{.query_vectors = true, .filters = true};
constexpr KindNeeds kVectorsAndUsers{.query_vectors = true, .users = true};
constexpr KindNeeds kVectorsAndGroups{.query_vectors = true, .group_field = true};

constexpr std::array<CallKind, 9> kCallKinds = {{
    {"vector", CallMethod::kSearch, kVectors, {}, SetVector},
    {"id", CallMethod::kSearch, kItemIds, {}, SetId},
    {"user", CallMethod::kSearch, kUserIds, kUserKeys, SetUser},
    {"recommend", CallMethod::kRecommend, kUserIds, kUserKeys, SetNothing},
    {"filter", CallMethod::kSearch, kVectorsAndFilters, {}, SetVector},
    {"examples", CallMethod::kSearch, kItemIds, kExampleKeys, SetExamples},
    {"blend", CallMethod::kSearch, kVectorsAndUsers, kBlendKeys, SetBlend},
    {"groups", CallMethod::kSearch, kVectorsAndGroups, kGroupKeys, SetGroups},
    {"diversity", CallMethod::kSearch, kVectors, kDiversityKeys, SetDiversity},
}};

// A random filter for a query; empty: no filter.
std::string AnyFilter(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random) {
  if (!spec.filters.empty()) return spec.filters[random.Below(spec.filters.size())];
  if (!spec.kind->needs.filters) return "";
  return samples.filters[random.Below(samples.filters.size())].text;
}

void SetOptions(const CallSpec& spec, v1::SearchOptions& options) {
  if (spec.k) options.set_k(*spec.k);
  if (spec.payload) *options.mutable_payload() = *spec.payload;
  if (spec.bulk) options.set_priority(v1::PRIORITY_BULK);
  if (const auto order = ColdStartOrderNamed(spec.cold_start)) {
    options.mutable_cold_start()->set_order(*order);
  }
  options.set_reply_bytes_max(Limits{}.reply_bytes_max);
}

absl::Status Missing(const CallSpec& spec, std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("calls of kind \"{}\" need {}", spec.kind->name, what));
}

}  // namespace

std::span<const CallKind> CallKinds() { return kCallKinds; }

const CallKind* FindCallKind(std::string_view name) {
  const auto* found = std::ranges::find(kCallKinds, name, &CallKind::name);
  return found == kCallKinds.end() ? nullptr : found;
}

absl::StatusOr<v1::Examples::Strategy> ParseStrategy(std::string_view name) {
  if (const auto strategy = StrategyNamed(name)) return *strategy;
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is no strategy; give average_vector, best_score or sum_scores", name));
}

SampleNeeds FindSampleNeeds(std::span<const CallSpec> specs) {
  SampleNeeds needs;
  for (const CallSpec& spec : specs) {
    const KindNeeds& kind = spec.kind->needs;
    needs.query_vectors |= kind.query_vectors;
    needs.rows |= kind.ids;
    needs.fields |= kind.filters && spec.filters.empty();
    needs.fields |= kind.group_field && spec.field.empty();
  }
  return needs;
}

absl::Status CheckSamples(const CallSpec& spec, const QuerySamples& samples) {
  const KindNeeds& needs = spec.kind->needs;
  if ((needs.query_vectors && samples.query_vectors.empty()) ||
      (needs.ids && samples.rows.empty())) {
    return Missing(spec, fmt::format("rows, and {} has none", samples.collection));
  }
  if (needs.users && samples.users.empty()) {
    return Missing(spec,
                   "user ids, which a server does not list: give --users user_ids.json, or "
                   "--folder with the collection's files");
  }
  if (needs.filters && spec.filters.empty() && samples.filters.empty()) {
    return Missing(spec,
                   fmt::format("a \"filter\": {} has no field to make one of", samples.collection));
  }
  if (needs.group_field && spec.field.empty() && samples.group_field.empty()) {
    return Missing(spec,
                   fmt::format("a \"field\" of keywords, and {} has none", samples.collection));
  }
  return absl::OkStatus();
}

v1::SearchRequest MakeSearch(const CallSpec& spec, const QuerySamples& samples,
                             RandomDraw& random) {
  v1::SearchRequest request;
  request.set_collection(samples.collection);
  SetOptions(spec, *request.mutable_options());
  for (std::uint32_t i = 0; i < spec.batch; ++i) {
    v1::Query& query = *request.add_queries();
    spec.kind->set_query(spec, samples, random, query);
    if (std::string filter = AnyFilter(spec, samples, random); !filter.empty()) {
      query.set_filter(std::move(filter));
    }
  }
  return request;
}

v1::RecommendRequest MakeRecommend(const CallSpec& spec, const QuerySamples& samples,
                                   RandomDraw& random) {
  v1::RecommendRequest request;
  request.set_collection(samples.collection);
  SetOptions(spec, *request.mutable_options());
  for (std::uint32_t i = 0; i < spec.batch; ++i) request.add_user_ids(AnyUser(samples, random));
  if (spec.exclude_seen) request.mutable_options()->set_exclude_seen(true);
  if (std::string filter = AnyFilter(spec, samples, random); !filter.empty()) {
    request.mutable_options()->set_filter(std::move(filter));
  }
  return request;
}

}  // namespace simile::cli::bench
