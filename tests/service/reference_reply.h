#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "service/calls/call.h"
#include "service/replies/replies.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// Responses as messages of the protobuf library, filled field by field from decoded rows. Tests
// compare replies in wire form with them.
//   Response  v1::SearchResponse or v1::RecommendResponse
template <class Response>
void FillResponse(const SearchReply::Parts& parts, Response& response);
v1::FetchResponse MakeFetchResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                    std::span<const FetchedItem> items,
                                    std::span<const std::string> notes);
v1::LookupResponse MakeLookupResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                      const filter::TextMatches& found,
                                      std::span<const std::string> notes);

// Writes the reply, parses the bytes, and compares them with the message. Returns the difference,
// or how the reply wrote more or fewer bytes than it said; empty when there is none.
std::string FindDifference(const Reply& reply, const google::protobuf::Message& expected);

}  // namespace simile::service
