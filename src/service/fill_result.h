#pragma once

#include <cstdint>
#include <string>

#include "service/response_builder.h"
#include "service/search_road.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// What the answers to queries of both kinds hold alike.
//   Message  SearchResult or UserRecommendations
template <class Message>
void FillResult(const ResponseBuilder& builder, const SearchRoad::QueryResult& result,
                Message& message) {
  builder.FillHits(result.hits, result.offset, *message.mutable_hits());
  std::uint32_t rank = result.offset;
  for (const engine::HitGroup& group : result.groups) {
    v1::HitGroup& filled = *message.add_groups();
    filled.set_rank(++rank);
    filled.set_keyword(std::string(group.keyword));
    builder.FillHits(group.hits, 0, *filled.mutable_hits());
  }
  if (result.rows_passing) message.set_rows_passing(*result.rows_passing);
  message.set_fallback_order(result.fallback_order);
}

}  // namespace simile::service
