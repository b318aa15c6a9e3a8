#pragma once

#include "service/call.h"
#include "service/search_pipeline.h"

namespace simile::v1 {
class RecommendRequest;
class RecommendResponse;
class SearchRequest;
class SearchResponse;
}  // namespace simile::v1

namespace simile::service {

// The methods of SearchService. Neither throws; each finishes its call now or later.
void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request,
                  v1::SearchResponse& response);
void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request, v1::RecommendResponse& response);

}  // namespace simile::service
