#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/call.h"
#include "service/unsent_replies.h"

namespace simile::service {

// Reads a message, and releases its bytes.
// Errors: kRequestNotParsed, naming the type, for bytes that are not a message of it.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// What a response may have at most; see AnyCall::SetReplyLimit.
struct ReplyLimit {
  std::uint64_t bytes_max = 0;
  std::string_view remedy = "ask for less";
  UnsentReplies* unsent = nullptr;  // counts large responses; null: does not
};

// The bytes of a response, in one slice.
// Errors: kReplyTooLarge when it has more than the limit; kQueueFull when replies that wait to be
// read leave no memory for it.
absl::StatusOr<grpc::ByteBuffer> SerializeReply(const Reply& reply, const ReplyLimit& limit);
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message,
                                                  const ReplyLimit& limit);

}  // namespace simile::service
