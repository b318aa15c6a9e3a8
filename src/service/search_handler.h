#pragma once

#include "service/call.h"
#include "service/search_pipeline.h"

namespace simile::v1 {
class SearchRequest;
class SearchResponse;
}  // namespace simile::v1

namespace simile::service {

// SearchService.Search. Never throws; finishes the call now or later.
void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request,
                  v1::SearchResponse& response);

}  // namespace simile::service
