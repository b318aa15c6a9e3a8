#pragma once

#include <absl/status/status.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/sent_vectors.h"

namespace simile::service {

// Parses a request like ParseMessage. A v1::SearchRequest of more than kParsedAtOnceBytesMax is
// split into its queries: the data of plain packed vectors is not copied into the message.
//   request  on an arena
//   vectors  set to this data
// Errors: those of ParseMessage.
absl::Status ParseRequest(grpc::ByteBuffer& bytes, google::protobuf::Message& request,
                          SentVectors& vectors);

}  // namespace simile::service
