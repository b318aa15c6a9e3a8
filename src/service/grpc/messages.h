#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>

#include "net/grpc_wire.h"
#include "service/calls/call.h"
#include "service/calls/unsent_replies.h"
#include "simile/clock.h"

namespace simile::service {

// A request of more bytes is parsed by a worker: on a loop it would hold up other calls.
inline constexpr std::size_t kParsedAtOnceBytesMax = 64U << 10;

struct UnknownFields {
  // Whether the bytes are fields up to their end. Otherwise counting ended at the first byte that
  // is not.
  bool is_wire_form = false;
  std::uint64_t count = 0;
};

// Counts the fields of a message that its type does not know, the fields of nested messages and
// groups included. The protobuf library keeps each unknown field in memory that no arena counts.
// Reads the whole message, and takes no memory.
//   count_max  counting ends when there are more
UnknownFields CountUnknownFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                                 const google::protobuf::Descriptor& type, std::uint64_t count_max);

// How many unknown fields a request of more than kParsedAtOnceBytesMax may have. Newer clients send
// a few. Each takes memory that is counted nowhere.
inline constexpr std::uint64_t kUnknownFieldsMax = 10'000;

// What a message may take on its arena. A request of large vectors takes about its own size. A
// request of short ids takes up to 20 times its size, but the number of ids is bounded. A request
// of empty messages would take 60 times its size.
std::uint64_t ParsedBytesMax(std::size_t message_bytes);

// Parses a message.
// Errors: kRequestNotParsed, naming the type, for bytes that are not a message of it;
//         the same for a large one with more than kUnknownFieldsMax unknown fields;
//         kOutOfMemory for one that takes more than ParsedBytesMax of its arena.
absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message& message);

// The error of ParseMessage for bytes that are not a message of the type.
absl::Status NotParsedError(const google::protobuf::Message& message);

// Parses a request like ParseMessage. A v1::SearchRequest of more than kParsedAtOnceBytesMax is
// split into its queries: the data of plain packed vectors is not copied into the message.
//   owner    keeps the bytes alive
//   request  on an arena
//   vectors  set to this data, with the owner
// Errors: those of ParseMessage.
absl::Status ParseRequest(std::string_view bytes, const std::shared_ptr<const void>& owner,
                          google::protobuf::Message& request, SentVectors& vectors);

// The limits of a response; see AnyCall::SetReplyLimit.
struct ReplyLimit {
  std::uint64_t bytes_max = 0;
  std::string_view remedy = "ask for less";
  UnsentReplies* unsent = nullptr;  // counts all but small responses; null: does not
  CallerKey caller = 0;
  // A response that would arrive after this is not sent; nothing: there is no deadline.
  std::optional<Clock::TimePoint> deadline = std::nullopt;
  const Clock* clock = nullptr;  // REQUIRES: not null with a deadline
};

// A response of at most this size counts nowhere, so that health checks and short errors are always
// sent. The other memory of its call is larger.
inline constexpr std::size_t kUncountedReplyBytes = 512;

// Counts memory among the replies of the caller that wait to be read.
// Errors: kQueueFull when these replies leave no memory for it.
absl::Status CountUnsent(std::uint64_t bytes, const ReplyLimit& limit, UnsentReplies::Part& part);

// A serialized response. Counted among the unread replies of its caller until it is sent.
using ReplyMessage = std::shared_ptr<const net::OutgoingMessage>;

// Serializes a response.
// Errors: kReplyTooLarge when it has more than the limit; kDeadlineExceeded when there is no time
//         left to send it; those of CountUnsent.
absl::StatusOr<ReplyMessage> SerializeReply(const Reply& reply, const ReplyLimit& limit);
absl::StatusOr<ReplyMessage> SerializeMessage(const google::protobuf::Message& message,
                                              const ReplyLimit& limit);

}  // namespace simile::service
