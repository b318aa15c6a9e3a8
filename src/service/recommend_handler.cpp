#include "service/recommend_handler.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "service/fill_result.h"
#include "service/guarded.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

std::uint32_t SeenCount(const data::Profiles& profiles, const std::string& user_id) {
  const auto user = profiles.ids.Find(user_id);
  return user ? static_cast<std::uint32_t>(profiles.seen.Of(*user).size()) : 0;
}

void Build(const SearchPipeline::Answer& answer, const v1::RecommendRequest& request,
           v1::RecommendResponse& response) {
  response.mutable_results()->Reserve(request.user_ids_size());
  for (int index = 0; index < request.user_ids_size(); ++index) {
    v1::UserRecommendations& result = *response.add_results();
    result.set_user_id(request.user_ids(index));
    result.set_seen_count(SeenCount(answer.snapshot.dataset->profiles, request.user_ids(index)));
    FillResult(answer.builder, answer.pages[static_cast<std::size_t>(index)], result);
  }
  response.set_next_page_token(answer.next_page_token);
}

}  // namespace

void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request, v1::RecommendResponse& response) {
  ValidSearch search;
  const absl::Status status = Guarded([&] {
    auto valid = ValidateRecommend(request, pipeline.limits());
    if (!valid.ok()) return valid.status();
    search = *std::move(valid);
    return absl::OkStatus();
  });
  if (!status.ok()) return call.Finish(status);
  pipeline.Run(call, request.collection(), std::move(search), "user_ids",
               *response.mutable_receipt(),
               [&request, &response](const SearchPipeline::Answer& answer) {
                 Build(answer, request, response);
               });
}

}  // namespace simile::service
