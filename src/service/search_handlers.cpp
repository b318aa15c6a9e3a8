#include "service/handlers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "service/calls/call.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// Validates the request and runs it.
//   validate  returns the ValidSearch of the request, or its error
template <class Validate>
void Handle(const SearchPipeline& pipeline, Call& call, const std::string& collection_name,
            Validate validate, SearchPipeline::Method method) {
  ValidSearch search;
  absl::StatusOr<PermittedCollection> collection;
  const absl::Status status = Guarded([&] {
    collection = call.access().Permit(collection_name);
    if (!collection.ok()) return collection.status();
    auto valid = validate(pipeline.limits());
    if (!valid.ok()) return valid.status();
    search = *std::move(valid);
    const auto most = std::ranges::max_element(search.queries, {}, &engine::QueryRequest::k);
    call.Describe(collection_name, search.queries.size(), most->k);
    return call.access().HoldQueries(search.queries.size());
  });
  if (!status.ok()) return call.Finish(status);
  pipeline.Run(call, *std::move(collection), std::move(search), method);
}

}  // namespace

void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request) {
  const auto validate = [&](const Limits& limits) {
    return ValidateSearch(request, limits, call.sent_vectors());
  };
  Handle(pipeline, call, request.collection(), validate, SearchPipeline::Method::kSearch);
}

void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request) {
  const auto validate = [&](const Limits& limits) { return ValidateRecommend(request, limits); };
  Handle(pipeline, call, request.collection(), validate, SearchPipeline::Method::kRecommend);
}

void HandleExport(const SearchPipeline& pipeline, Call& call, const ExportRun& run) {
  const auto validate = [&](const Limits&) { return run.ValidPart(); };
  Handle(pipeline, call, run.collection(), validate, run.method());
}

void HandleExplain(const SearchPipeline& pipeline, Call& call, const v1::ExplainRequest& request) {
  const auto validate = [&](const Limits& limits) { return ValidateExplain(request, limits); };
  const std::string& collection =
      request.has_recommend() ? request.recommend().collection() : request.search().collection();
  Handle(pipeline, call, collection, validate,
         request.has_recommend() ? SearchPipeline::Method::kRecommend
                                 : SearchPipeline::Method::kSearch);
}

}  // namespace simile::service
