#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "service/call.h"
#include "service/replies.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// Responses as messages of the protobuf library, filled field by field from decoded rows: what
// replies in wire form are compared with.
//   Response  v1::SearchResponse or v1::RecommendResponse
template <class Response>
void FillResponse(const SearchReply::Parts& parts, Response& response);
v1::FetchResponse MakeFetchResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                    std::span<const FetchedItem> items,
                                    std::span<const std::string> notes);
v1::LookupResponse MakeLookupResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                      const filter::TextMatches& found,
                                      std::span<const std::string> notes);

// Writes the reply and parses what it wrote. Returns how that differs from the message, or how the
// reply wrote more or fewer bytes than it said; empty when it does not.
std::string FindDifference(const Reply& reply, const google::protobuf::Message& expected);

}  // namespace simile::service
