#pragma once

#include <cstdint>

namespace google::protobuf {
class MessageLite;
}

namespace simile::service {

// Identifies the request that a page token continues: a hash of all its fields but options.paged
// and options.page_token. Equal requests hash alike in every process.
// REQUIRES: a SearchRequest or a RecommendRequest.
// Cost: one serialization of the request.
std::uint64_t HashRequest(const google::protobuf::MessageLite& request);

}  // namespace simile::service
