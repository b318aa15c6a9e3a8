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

// One entry of a mix: a kind of call and its parameters. Parameters that the kind does not use are
// unset.
struct CallSpec {
  const CallKind* kind = nullptr;
  double weight = 1;
  std::uint32_t batch = 1;  // queries in each call
  std::optional<std::uint32_t> k;
  std::optional<v1::PayloadSelector> payload;
  bool bulk = false;                 // with PRIORITY_BULK
  std::vector<std::string> filters;  // each query gets one of these filters; empty: no filter
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
  std::string cold_start;  // the order for users without a profile; empty: such a user is an error
};

// The samples that a kind of call needs.
struct KindNeeds {
  bool query_vectors = false;
  bool ids = false;
  bool users = false;
  bool filters = false;      // unless the spec gives filters
  bool group_field = false;  // unless the spec gives a field
};

// A kind of call. A new kind is one row in the table of call_kinds.cpp.
struct CallKind {
  std::string_view name;
  CallMethod method;
  KindNeeds needs;
  // Keys of a mix file that this kind takes, besides the keys that every kind takes.
  std::span<const std::string_view> keys;
  // Fills in one query. Unused for Recommend, whose request is a list of users.
  void (*set_query)(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random,
                    v1::Query& query);
};
std::span<const CallKind> CallKinds();
// Null for an unknown name.
const CallKind* FindCallKind(std::string_view name);

// The samples that at least one of the specs needs.
SampleNeeds FindSampleNeeds(std::span<const CallSpec> specs);
// OK if the samples have what the spec needs. Errors: kInvalidArgument saying what is missing and
// which flag gives it.
absl::Status CheckSamples(const CallSpec& spec, const QuerySamples& samples);

// The strategy of this name in a mix file. Errors: kInvalidArgument listing the names.
absl::StatusOr<v1::Examples::Strategy> ParseStrategy(std::string_view name);

// One random call. REQUIRES: CheckSamples is OK; the spec's kind has this method.
v1::SearchRequest MakeSearch(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random);
v1::RecommendRequest MakeRecommend(const CallSpec& spec, const QuerySamples& samples,
                                   RandomDraw& random);

}  // namespace simile::cli::bench
