#pragma once

#include <cstdint>
#include <string>

#include "service/response_builder.h"
#include "service/search_pipeline.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// Fills the fields that both kinds of results have.
//   Message  SearchResult or UserRecommendations
template <class Message>
void FillResult(const ResponseBuilder& builder, const SearchPipeline::ResultPage& page,
                Message& message) {
  builder.FillHits(page.hits, page.offset, *message.mutable_hits());
  std::uint32_t rank = page.offset;
  for (const engine::HitGroup& group : page.groups) {
    v1::HitGroup& filled = *message.add_groups();
    filled.set_rank(++rank);
    filled.set_keyword(std::string(group.keyword));
    builder.FillHits(group.hits, 0, *filled.mutable_hits());
  }
  if (page.rows_passing) message.set_rows_passing(*page.rows_passing);
  message.set_cold_start_order(page.cold_start_order);
}

}  // namespace simile::service
