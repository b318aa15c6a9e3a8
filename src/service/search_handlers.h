#pragma once

#include "service/call.h"
#include "service/search_pipeline.h"

namespace simile::v1 {
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// The methods of SearchService. Neither throws; each finishes its call now or later.
void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request);
void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request);

}  // namespace simile::service
