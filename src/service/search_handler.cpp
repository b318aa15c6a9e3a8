#include "service/search_handler.h"

#include <utility>

#include "service/fill_result.h"
#include "service/guarded.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

void Build(const SearchRoad::Answer& answer, v1::SearchResponse& response) {
  response.mutable_results()->Reserve(static_cast<int>(answer.results.size()));
  for (const SearchRoad::QueryResult& result : answer.results) {
    FillResult(answer.builder, result, *response.add_results());
  }
  response.set_next_page_token(answer.next_page_token);
}

}  // namespace

void HandleSearch(const SearchRoad& road, Call& call, const v1::SearchRequest& request,
                  v1::SearchResponse& response) {
  ValidSearch search;
  const absl::Status status = Guarded([&] {
    auto valid = ValidateSearch(request, road.limits());
    if (!valid.ok()) return valid.status();
    search = *std::move(valid);
    return absl::OkStatus();
  });
  if (!status.ok()) return call.Finish(status);
  road.Run(call, request.collection(), std::move(search), "queries", *response.mutable_receipt(),
           [&response](const SearchRoad::Answer& answer) { Build(answer, response); });
}

}  // namespace simile::service
