#pragma once

#include "service/call.h"
#include "service/search_pipeline.h"

namespace simile::v1 {
class RecommendRequest;
class RecommendResponse;
}  // namespace simile::v1

namespace simile::service {

// SearchService.Recommend. Never throws; finishes the call now or later.
void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request, v1::RecommendResponse& response);

}  // namespace simile::service
