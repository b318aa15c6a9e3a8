#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

namespace simile::service {

// Reads a message, and releases its bytes.
// Errors: kRequestNotParsed, naming the type, for bytes that are not a message of it.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// What a response may have at most; see Call::SetReplyLimit.
struct ReplyLimit {
  std::uint64_t bytes_max = 0;
  std::string_view remedy = "ask for less";
};

// Errors: kReplyTooLarge when the message has more bytes than the limit.
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message,
                                                  const ReplyLimit& limit);

}  // namespace simile::service
