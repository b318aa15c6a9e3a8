#pragma once

#include "service/call.h"
#include "service/export_run.h"
#include "service/search_pipeline.h"

namespace simile::v1 {
class ExplainRequest;
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// The methods of SearchService. None throws; each finishes its call now or later.
void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request);
void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request);
// Answers the part that ExportRun::MakePart has made.
void HandleExport(const SearchPipeline& pipeline, Call& call, const ExportRun& run);
void HandleExplain(const SearchPipeline& pipeline, Call& call, const v1::ExplainRequest& request);

}  // namespace simile::service
