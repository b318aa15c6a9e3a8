#pragma once

#include <memory>
#include <string_view>

#include <absl/status/status.h>
#include <google/protobuf/message.h>

#include "service/sent_vectors.h"

namespace simile::service {

// Parses a request like ParseMessage. A v1::SearchRequest of more than kParsedAtOnceBytesMax is
// split into its queries: the data of plain packed vectors is not copied into the message.
//   owner    keeps the bytes alive
//   request  on an arena
//   vectors  set to this data, with the owner
// Errors: those of ParseMessage.
absl::Status ParseRequest(std::string_view bytes, const std::shared_ptr<const void>& owner,
                          google::protobuf::Message& request, SentVectors& vectors);

}  // namespace simile::service
