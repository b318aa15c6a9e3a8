#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/search/resolved_query.h"
#include "query/vector_bytes.h"

namespace simile::query {

// What a query searches with.
struct ByVector {
  VectorBytes values;                 // borrowed from the request
  bool as_stored = false;             // searched bit for bit, not brought to unit length
  std::string_view field = "vector";  // its name in the request, for errors; static storage
};
struct ByItem {
  std::string id;                 // its own row is left out of the answer
  std::string_view field = "id";  // as ByVector::field
};
// An item of another collection.
struct ByOtherItem {
  std::string collection;
  std::string id;
};
using VectorOrItem = std::variant<ByVector, ByItem, ByOtherItem>;
struct ByUser {
  std::string id;
  bool exclude_seen = false;           // leave out the rows the user has interacted with
  std::string_view field = "user_id";  // as ByVector::field; empty: the query is the id and no more
};

// An item or vector that rows are to be similar to, or dissimilar.
struct Example {
  VectorOrItem target;
  float weight = 1;  // multiplies its similarities; positive and finite
};

// How the similarities to examples become one score: formulas in docs/design/recommendation.md.
enum class Strategy : std::uint8_t { kAverageVector, kBestScore, kSumScores };

struct ByExamples {
  std::vector<Example> positive;
  std::vector<Example> negative;
  Strategy strategy = Strategy::kAverageVector;
};

// A target and a user's profile, added: (1 - user_weight) * target + user_weight * profile, both at
// unit length for cosine.
struct ByBlend {
  VectorOrItem target;
  ByUser user;
  float user_weight = 0.5F;  // 0..1
};

// The answer for a user without a profile: the rows with the greatest values of a field.
struct ColdStart {
  enum class Order : std::uint8_t { kNewest, kMostPopular };
  Order order = Order::kNewest;
  // Integers, numbers or times. Empty: for kNewest the only time field, or else `year`; for
  // kMostPopular how many users have seen the row.
  std::string_view field;
};

struct GroupRequest {
  std::string_view field;
  std::uint32_t group_size = 1;
};

// A validated query of a request, without protobuf. Its views are of the request, whose options'
// texts all queries of a call may share.
struct QueryRequest {
  std::variant<ByVector, ByItem, ByOtherItem, ByUser, ByExamples, ByBlend> target;
  std::uint32_t k = 10;
  std::uint32_t offset = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  // Rows never returned. An id the collection does not have excludes nothing: callers keep long
  // lists of what a user has dismissed, and items disappear from collections.
  std::vector<std::string> exclude_ids;
  std::string_view filter;         // rows that may be returned; empty lets every row pass
  bool filter_is_default = false;  // of the call's options, for errors
  std::optional<engine::Diversity> diversity;  // one of these at most
  std::optional<GroupRequest> group_by;
  bool group_by_is_default = false;     // of the call's options, for errors
  std::optional<ColdStart> cold_start;  // of ByUser
};

}  // namespace simile::query
