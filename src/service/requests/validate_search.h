#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/query/query_request.h"
#include "engine/search/search_task.h"
#include "service/calls/call.h"
#include "service/requests/answer_options.h"
#include "service/requests/page_token.h"
#include "simile/limits.h"

namespace simile::v1 {
class ExplainRequest;
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// Which page of the call is requested. The queries' offsets include the pages before it.
struct Paging {
  bool wanted = false;  // whether the answer carries a token of the next page
  std::uint64_t request_hash = 0;
  std::optional<PageToken> token;  // nothing on the first page
};

enum class ReceiptDetail : std::uint8_t {
  kBrief,
  kFull,
  kTimed,  // full, with the device's own time
};

// A call whose every number is within its limits. Whether ids and fields exist and the dimension
// fits is checked against the snapshot that the call pins. Must not outlive the request.
struct ValidSearch {
  std::vector<engine::QueryRequest> queries;
  // What is known of each query before it is resolved. With partial this says why a query is
  // refused; a refused query is empty.
  engine::CallReport report;
  bool partial = false;  // a query that cannot be answered does not fail the others
  std::vector<std::string_view> exclude_ids;               // for every query; views of the request
  std::optional<std::vector<std::string_view>> allow_ids;  // views of the request; unset: all items
  // Other collections whose items the queries name, each once, in the order of the request.
  std::vector<std::string> item_collections;
  AnswerOptions answer;
  bool as_columns = false;  // LAYOUT_COLUMNS
  ReceiptDetail receipt = ReceiptDetail::kFull;
  engine::Priority priority = engine::Priority::kOnline;
  Paging paging;
  std::uint64_t request_bytes = 0;  // of the request in memory
  // Of Explain, which has one query: the items to explain, and the place of the query in the
  // request.
  std::vector<std::string_view> explained_ids;  // views of the request
  std::size_t query_index = 0;
};

//   vectors  Call::sent_vectors; must live as long as the request
// Errors: INVALID_FIELD, INVALID_PAGE_TOKEN. Pure; O(size of the request).
absl::StatusOr<ValidSearch> ValidateSearch(const v1::SearchRequest& request, const Limits& limits,
                                           const SentVectors& vectors = {});
absl::StatusOr<ValidSearch> ValidateRecommend(const v1::RecommendRequest& request,
                                              const Limits& limits);
// Validates the request to explain, and keeps only the query to explain.
// Errors: also those of the query, where the request is a partial call.
absl::StatusOr<ValidSearch> ValidateExplain(const v1::ExplainRequest& request,
                                            const Limits& limits);

}  // namespace simile::service
