#include "service/grpc/messages.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/grpc/unknown_fields.h"
#include "service/reply_size.h"

namespace simile::service {
namespace {

// A message of the protobuf library as a reply.
class MessageReply final : public Reply {
 public:
  explicit MessageReply(const google::protobuf::Message& message)
      : message_(message), bytes_(message.ByteSizeLong()) {}

  std::size_t bytes() const override { return bytes_; }
  std::uint8_t* Write(std::uint8_t* out) const override {
    return message_.SerializeWithCachedSizesToArray(out);
  }

 private:
  const google::protobuf::Message& message_;
  const std::size_t bytes_;
};

// A response that is counted as long as it exists.
class CountedMessage final : public net::OutgoingMessage {
 public:
  CountedMessage(std::size_t bytes, UnsentReplies::Part counted)
      : OutgoingMessage(bytes), counted_(std::move(counted)) {}

 private:
  const UnsentReplies::Part counted_;
};

absl::StatusOr<std::shared_ptr<net::OutgoingMessage>> NewMessage(std::size_t bytes,
                                                                 const ReplyLimit& limit) {
  if (limit.unsent == nullptr || bytes <= kUncountedReplyBytes) {
    return std::make_shared<net::OutgoingMessage>(bytes);
  }
  UnsentReplies::Part counted;
  const absl::Status fits = CountUnsent(bytes, limit, counted);
  if (!fits.ok()) return fits;
  return std::make_shared<CountedMessage>(bytes, std::move(counted));
}

// Writing and sending a large response takes an estimated 2 ms a MiB. A caller would wait past the
// deadline for one that arrives after it (tests/bench/serving/hostile.py, row `deadlines`).
absl::Status CheckTimeToSend(std::size_t bytes, const ReplyLimit& limit) {
  constexpr std::size_t kBytesPerMs = 512U << 10;
  if (!limit.deadline || bytes <= kBytesPerMs) return absl::OkStatus();
  const std::chrono::milliseconds needed(static_cast<std::int64_t>(bytes / kBytesPerMs));
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*limit.deadline - limit.clock->Now());
  if (needed <= left) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kDeadlineExceeded,
      fmt::format(
          "the response of {} bytes takes about {} ms to send, and the deadline {}; ask for less, "
          "or set a later deadline",
          base::Grouped(bytes), needed.count(),
          left.count() > 0 ? fmt::format("is in {} ms", left.count()) : "has passed"));
}

int SizeOf(std::string_view bytes) { return static_cast<int>(bytes.size()); }

// Hands out the bytes of a message in small pieces, and before each asks how much memory what was
// parsed of it takes by now.
class BoundedReader final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  //   arena  of the message; null: not asked
  BoundedReader(std::string_view bytes, const google::protobuf::Arena* arena)
      : in_(bytes.data(), SizeOf(bytes), kPieceBytes),
        arena_(arena),
        memory_max_(ParsedBytesMax(bytes.size())) {}

  bool Next(const void** data, int* size) override {
    takes_too_much_ = arena_ != nullptr && arena_->SpaceAllocated() > memory_max_;
    return !takes_too_much_ && in_.Next(data, size);
  }
  void BackUp(int count) override { in_.BackUp(count); }
  bool Skip(int count) override { return in_.Skip(count); }
  std::int64_t ByteCount() const override { return in_.ByteCount(); }

  bool takes_too_much() const { return takes_too_much_; }

 private:
  static constexpr int kPieceBytes = 16 << 10;

  google::protobuf::io::ArrayInputStream in_;
  const google::protobuf::Arena* const arena_;
  const std::uint64_t memory_max_;
  bool takes_too_much_ = false;
};

absl::Status TakesTooMuchError(std::size_t bytes, std::uint64_t memory_max) {
  return base::Error(
      base::ErrorReason::kOutOfMemory,
      fmt::format("the {} bytes of the request take more than {} bytes of memory: it is made of "
                  "very many small parts; split it into several calls",
                  base::Grouped(bytes), base::Grouped(memory_max)));
}

// Whether a large message may be parsed. The memory of unknown fields is counted nowhere, and in a
// small message they take no more than known fields may. Errors: kRequestNotParsed
absl::Status CheckUnknownFields(std::string_view bytes, const google::protobuf::Message& message) {
  google::protobuf::io::ArrayInputStream reader(bytes.data(), SizeOf(bytes));
  const UnknownFields unknown =
      CountUnknownFields(reader, *message.GetDescriptor(), kUnknownFieldsMax);
  if (unknown.count > kUnknownFieldsMax) {
    return base::Error(
        base::ErrorReason::kRequestNotParsed,
        fmt::format("could not be parsed as {}: it has more than {} fields that this server does "
                    "not know; make it of the fields in this server's version of the API",
                    message.GetTypeName(), base::Grouped(kUnknownFieldsMax)));
  }
  return unknown.is_wire_form ? absl::OkStatus() : NotParsedError(message);
}

}  // namespace

absl::Status NotParsedError(const google::protobuf::Message& message) {
  return base::Error(base::ErrorReason::kRequestNotParsed,
                     fmt::format("could not be parsed as {}", message.GetTypeName()));
}

std::uint64_t ParsedBytesMax(std::size_t message_bytes) {
  constexpr std::uint64_t kOfManySmallParts = 64;
  constexpr std::uint64_t kOfLargeParts = 2;
  constexpr std::uint64_t kSmallPartsMax = 20U << 20;  // 262,144 excluded ids
  return std::min(kOfManySmallParts * message_bytes,
                  kOfLargeParts * message_bytes + kSmallPartsMax) +
         kParsedAtOnceBytesMax;
}

absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message& message) {
  if (bytes.size() > kParsedAtOnceBytesMax) {
    const absl::Status checked = CheckUnknownFields(bytes, message);
    if (!checked.ok()) return checked;
  }
  BoundedReader reader(bytes, message.GetArena());
  const bool parsed = message.ParseFromZeroCopyStream(&reader);
  if (reader.takes_too_much()) {
    return TakesTooMuchError(bytes.size(), ParsedBytesMax(bytes.size()));
  }
  return parsed ? absl::OkStatus() : NotParsedError(message);
}

absl::Status CountUnsent(std::uint64_t bytes, const ReplyLimit& limit, UnsentReplies::Part& part) {
  constexpr std::chrono::seconds kRetryAfter{1};
  if (limit.unsent->Hold(limit.caller, bytes, part)) return absl::OkStatus();
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("replies that wait to be read leave no memory for this one: {}; read "
                              "them sooner, ask for less, or ask another server",
                              limit.unsent->Shortage(limit.caller, bytes))),
      kRetryAfter);
}

absl::StatusOr<ReplyMessage> SerializeReply(const Reply& reply, const ReplyLimit& limit) {
  absl::Status fits = CheckReplySize(reply, limit.bytes_max, limit.remedy);
  if (fits.ok()) fits = CheckTimeToSend(reply.bytes(), limit);
  if (!fits.ok()) return fits;
  const auto message = NewMessage(reply.bytes(), limit);
  if (!message.ok()) return message.status();
  std::uint8_t* const begin = (*message)->data();
  [[maybe_unused]] const std::uint8_t* const end = reply.Write(begin);
  assert(end == begin + reply.bytes());
  return *message;
}

absl::StatusOr<ReplyMessage> SerializeMessage(const google::protobuf::Message& message,
                                              const ReplyLimit& limit) {
  return SerializeReply(MessageReply(message), limit);
}

}  // namespace simile::service
