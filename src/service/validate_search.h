#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "recommend/query_request.h"
#include "service/page_token.h"
#include "simile/limits.h"

namespace simile::v1 {
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// Excluded ids of a call, counted once for every query they apply to. Bounds the copies that the
// options' list turns into.
inline constexpr std::uint64_t kExclusionsPerCallMax = 256U << 10;

// What each hit of an answer carries, and how large the answer may be.
struct AnswerShape {
  std::vector<std::string> payload_fields;  // empty: all
  bool with_payload = true;
  bool with_vectors = false;
  std::uint64_t reply_bytes_max = 0;
};

// Which page of the call is asked for; the queries' offsets are on it already.
struct Paging {
  bool wanted = false;  // whether to say where the next page begins
  std::uint64_t request_hash = 0;
  std::optional<PageToken> token;  // nothing on the first page
};

// A call whose every number is within its limits. What needs the collection (do ids and fields
// exist, does the dimension fit) is checked against the snapshot the call pins.
struct ValidSearch {
  std::vector<recommend::QueryRequest> queries;
  AnswerShape shape;
  Paging paging;
};

// Errors: kInvalidArgument naming the field with its index (`queries[3].k`), what was found and
// what would be right. Pure; O(size of the request).
absl::StatusOr<ValidSearch> ValidateSearch(const v1::SearchRequest& request, const Limits& limits);
absl::StatusOr<ValidSearch> ValidateRecommend(const v1::RecommendRequest& request,
                                              const Limits& limits);

}  // namespace simile::service
