#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/call_sender.h"
#include "cli/bench/query_samples.h"
#include "cli/bench/random_draw.h"

namespace simile::cli::bench {

struct CallKind;

// One kind of call in a mix, with what it asks for. Members that a kind has no use for are unset.
struct CallSpec {
  const CallKind* kind = nullptr;
  double weight = 1;
  std::uint32_t batch = 1;  // queries in each call
  std::optional<std::uint32_t> k;
  std::optional<v1::PayloadSelector> payload;
  bool bulk = false;                 // with PRIORITY_BULK
  std::vector<std::string> filters;  // one of these for each query; empty: none
  // examples
  std::uint32_t positive = 3;
  std::uint32_t negative = 0;
  std::string strategy = "average_vector";
  // blend
  std::optional<double> user_weight;
  // groups
  std::string field;  // empty: QuerySamples::group_field
  std::optional<std::uint32_t> group_size;
  // diversity
  std::optional<double> lambda;
  std::optional<std::uint32_t> candidates;
  // user, recommend, blend
  bool exclude_seen = false;
  // user, recommend
  std::string cold_start;  // the order for users without a profile; empty: they are an error
};

// What a kind of call is made of.
struct KindNeeds {
  bool query_vectors = false;
  bool ids = false;
  bool users = false;
  bool filters = false;      // unless the spec has its own
  bool group_field = false;  // likewise
};

// A kind of call. The one place that a new kind is added to is the table in call_kinds.cpp.
struct CallKind {
  std::string_view name;
  CallMethod method;
  KindNeeds needs;
  // Keys of a mix file that this kind takes besides those of every kind.
  std::span<const std::string_view> keys;
  // Sets one query. Of Recommend: unused, the users are the request.
  void (*set_query)(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
                    v1::Query& query);
};
std::span<const CallKind> CallKinds();
// Null for an unknown name.
const CallKind* FindCallKind(std::string_view name);

// What the specs need that samples can give.
SampleNeeds FindSampleNeeds(std::span<const CallSpec> specs);
// Whether the samples have what the spec needs.
// Errors: kInvalidArgument saying what is missing and which flag gives it.
absl::Status CheckSamples(const CallSpec& spec, const QuerySamples& samples);

// The strategies' names in a mix file.
absl::StatusOr<v1::Examples::Strategy> ParseStrategy(std::string_view name);

// One random call. REQUIRES: CheckSamples is OK; the spec's kind has this method.
v1::SearchRequest MakeSearch(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random);
v1::RecommendRequest MakeRecommend(const CallSpec& spec, const QuerySamples& samples,
                                   RandomDraw& random);

}  // namespace simile::cli::bench
