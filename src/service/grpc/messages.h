#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/call.h"
#include "service/unsent_replies.h"

namespace simile::service {

// A request of more bytes is parsed by a worker: on the I/O thread it would hold up other calls.
inline constexpr std::size_t kParsedAtOnceBytesMax = 64U << 10;

// What a message may take on its arena. Such of large vectors take about their bytes again, such of
// short ids up to twenty times as much, but there may be no more than so many of those; and such of
// empty messages would take sixty times as much.
std::uint64_t ParsedBytesMax(std::size_t message_bytes);

// Reads a message, and releases its bytes.
// Errors: kRequestNotParsed, naming the type, for bytes that are not a message of it;
//         kOutOfMemory for one that takes more than ParsedBytesMax of its arena.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// What a response may have at most; see AnyCall::SetReplyLimit.
struct ReplyLimit {
  std::uint64_t bytes_max = 0;
  std::string_view remedy = "ask for less";
  UnsentReplies* unsent = nullptr;  // counts all but small responses; null: does not
  CallerKey caller = 0;
};

// Counts memory among the replies of the caller that wait to be read.
// Errors: kQueueFull when those leave none for it.
absl::Status CountUnsent(std::uint64_t bytes, const ReplyLimit& limit, UnsentReplies::Part& part);

// The bytes of a response, in one slice.
// Errors: kReplyTooLarge when it has more than the limit; those of CountUnsent.
absl::StatusOr<grpc::ByteBuffer> SerializeReply(const Reply& reply, const ReplyLimit& limit);
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message,
                                                  const ReplyLimit& limit);

}  // namespace simile::service
