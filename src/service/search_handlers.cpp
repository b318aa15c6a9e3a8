#include "service/search_handlers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "service/guarded.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using Answer = SearchPipeline::Answer;

v1::ColdStart::Order OrderOf(query::ColdStart::Order order) {
  switch (order) {
    case query::ColdStart::Order::kNewest:
      return v1::ColdStart::ORDER_NEWEST;
    case query::ColdStart::Order::kMostPopular:
      return v1::ColdStart::ORDER_MOST_POPULAR;
  }
  return v1::ColdStart::ORDER_UNSPECIFIED;
}

void FillResult(const ResponseBuilder& builder, const SearchPipeline::ResultPage& page,
                v1::SearchResult& message) {
  builder.FillHits(page.hits, page.offset, *message.mutable_hits());
  message.set_score_kind(page.score_kind);
  std::uint32_t rank = page.offset;
  for (const engine::HitGroup& group : page.groups) {
    v1::HitGroup& filled = *message.add_groups();
    filled.set_rank(++rank);
    filled.set_keyword(group.keyword);
    builder.FillHits(group.hits, 0, *filled.mutable_hits());
  }
  if (page.rows_passing) message.set_rows_passing(*page.rows_passing);
  if (page.cold_start) {
    message.mutable_cold_start()->set_order(OrderOf(page.cold_start->order));
    message.mutable_cold_start()->set_field(page.cold_start->field);
  }
}

// How many of the items that exist for the call a user has seen.
//   existing  null for all items
std::uint32_t SeenCount(const data::Profiles& profiles, const std::string& user_id,
                        const RowMask* existing) {
  const auto user = profiles.ids.Find(user_id);
  if (!user) return 0;
  const std::span<const Row> seen = profiles.seen.Of(*user);
  if (existing == nullptr) return static_cast<std::uint32_t>(seen.size());
  return static_cast<std::uint32_t>(
      std::ranges::count_if(seen, [&](Row row) { return existing->Allows(row); }));
}

// Validates the request and runs it; `fill` fills each result of the response.
//   path  the request's repeated field, for messages
template <class Request, class Response, class Fill>
void Handle(const SearchPipeline& pipeline, Call& call, const Request& request, Response& response,
            absl::StatusOr<ValidSearch> (&validate)(const Request&, const Limits&),
            std::string_view path, Fill fill) {
  ValidSearch search;
  const absl::Status status = Guarded([&] {
    auto valid = validate(request, pipeline.limits());
    if (valid.ok()) search = *std::move(valid);
    return valid.status();
  });
  if (!status.ok()) return call.Finish(status);
  pipeline.Run(call, request.collection(), std::move(search), path, *response.mutable_receipt(),
               [&response, fill](const Answer& answer) {
                 response.mutable_results()->Reserve(static_cast<int>(answer.pages.size()));
                 for (std::size_t index = 0; index < answer.pages.size(); ++index) {
                   fill(answer, index, *response.add_results());
                 }
                 response.set_next_page_token(answer.next_page_token);
               });
}

}  // namespace

void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request,
                  v1::SearchResponse& response) {
  Handle(pipeline, call, request, response, ValidateSearch, "queries",
         [](const Answer& answer, std::size_t index, v1::SearchResult& result) {
           FillResult(answer.builder, answer.pages[index], result);
         });
}

void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request, v1::RecommendResponse& response) {
  Handle(pipeline, call, request, response, ValidateRecommend, "user_ids",
         [&request](const Answer& answer, std::size_t index, v1::SearchResult& result) {
           const std::string& user_id = request.user_ids(static_cast<int>(index));
           result.set_user_id(user_id);
           result.set_seen_count(
               SeenCount(answer.snapshot.dataset->profiles, user_id, answer.existing));
           FillResult(answer.builder, answer.pages[index], result);
         });
}

}  // namespace simile::service
