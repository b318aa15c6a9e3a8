#include "service/search_handler.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "service/guarded.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

void Build(const SearchRoad::Answer& answer, v1::SearchResponse& response) {
  response.mutable_results()->Reserve(static_cast<int>(answer.hits.size()));
  for (std::size_t index = 0; index < answer.hits.size(); ++index) {
    v1::SearchResult& result = *response.add_results();
    answer.builder.FillHits(answer.hits[index], answer.queries[index].offset,
                            *result.mutable_hits());
    if (answer.rows_passing[index]) result.set_rows_passing(*answer.rows_passing[index]);
  }
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
