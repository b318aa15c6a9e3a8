#include "service/search_handler.h"

#include <utility>

#include "service/fill_result.h"
#include "service/guarded.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

void Build(const SearchPipeline::Answer& answer, v1::SearchResponse& response) {
  response.mutable_results()->Reserve(static_cast<int>(answer.pages.size()));
  for (const SearchPipeline::ResultPage& page : answer.pages) {
    FillResult(answer.builder, page, *response.add_results());
  }
  response.set_next_page_token(answer.next_page_token);
}

}  // namespace

void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request,
                  v1::SearchResponse& response) {
  ValidSearch search;
  const absl::Status status = Guarded([&] {
    auto valid = ValidateSearch(request, pipeline.limits());
    if (!valid.ok()) return valid.status();
    search = *std::move(valid);
    return absl::OkStatus();
  });
  if (!status.ok()) return call.Finish(status);
  pipeline.Run(call, request.collection(), std::move(search), "queries",
               *response.mutable_receipt(),
               [&response](const SearchPipeline::Answer& answer) { Build(answer, response); });
}

}  // namespace simile::service
