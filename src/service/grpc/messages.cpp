#include "service/grpc/messages.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "net/refused_body.h"
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

// The memory of a response that is counted until gRPC lets go of it. It is allocated here: gRPC
// ends the process when its own allocation fails.
struct CountedBlock {
  std::unique_ptr<std::uint8_t[]> bytes;
  UnsentReplies::Part counted;
};

absl::StatusOr<grpc::Slice> NewSlice(std::size_t bytes, const ReplyLimit& limit) {
  if (limit.unsent == nullptr || bytes <= kUncountedReplyBytes) return grpc::Slice(bytes);
  auto block = std::make_unique<CountedBlock>();
  const absl::Status counted = CountUnsent(bytes, limit, block->counted);
  if (!counted.ok()) return counted;
  block->bytes = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  grpc::Slice slice(
      block->bytes.get(), bytes, [](void* owner) { delete static_cast<CountedBlock*>(owner); },
      block.get());
  static_cast<void>(block.release());  // the slice, which may have found no memory, owns it now
  return slice;
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

// Hands out the bytes of a message in small pieces, and before each asks how much memory what was
// parsed of it takes by now.
class BoundedReader final : public grpc::ProtoBufferReader {
 public:
  //   arena  of the message; null: not asked
  BoundedReader(grpc::ByteBuffer& bytes, const google::protobuf::Arena* arena)
      : ProtoBufferReader(&bytes), arena_(arena), memory_max_(ParsedBytesMax(bytes.Length())) {}

  bool Next(const void** data, int* size) override {
    constexpr int kPieceBytes = 16 << 10;
    takes_too_much_ = arena_ != nullptr && arena_->SpaceAllocated() > memory_max_;
    if (takes_too_much_ || !ProtoBufferReader::Next(data, size)) return false;
    rest_ = std::max(0, *size - kPieceBytes);
    *size -= rest_;
    if (rest_ > 0) ProtoBufferReader::BackUp(rest_);
    return true;
  }
  void BackUp(int count) override { ProtoBufferReader::BackUp(rest_ + count); }

  bool takes_too_much() const { return takes_too_much_; }

 private:
  const google::protobuf::Arena* const arena_;
  const std::uint64_t memory_max_;
  int rest_ = 0;  // of the chunk of which a piece was handed out
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
absl::Status CheckUnknownFields(grpc::ByteBuffer& bytes, const google::protobuf::Message& message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok()) return NotParsedError(message);
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

// Errors: what the frame guard has refused of the request.
absl::Status CheckReceived(const grpc::ByteBuffer& bytes) {
  if (bytes.Length() != net::kRefusalMarkBytes) return absl::OkStatus();
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return absl::OkStatus();
  std::vector<std::uint8_t> message;
  for (const grpc::Slice& slice : slices) message.insert(message.end(), slice.begin(), slice.end());
  const auto refused = net::ReadMark(message);
  if (!refused) return absl::OkStatus();
  if (refused->why == net::RefusedBody::Why::kTooLarge) {
    return base::Error(base::ErrorReason::kOutOfMemory,
                       fmt::format("the request of {} bytes is larger than "
                                   "limits.receive_bytes_max allows; split it into several calls",
                                   base::Grouped(refused->declared_bytes)));
  }
  constexpr std::chrono::seconds kRetryAfter{1};
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("the request of {} bytes was not received: together with others that "
                              "the same address has begun to send it would exceed "
                              "limits.unfinished_bytes_per_peer_max; send fewer at a time",
                              base::Grouped(refused->declared_bytes))),
      kRetryAfter);
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

absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  const std::size_t length = bytes.Length();
  bool parsed = false;
  bool takes_too_much = false;
  const absl::Status checked =
      length > kParsedAtOnceBytesMax ? CheckUnknownFields(bytes, message) : CheckReceived(bytes);
  if (checked.ok()) {
    BoundedReader reader(bytes, message.GetArena());
    // Without any bytes, not even those of an empty message, there is nothing to read.
    parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
    takes_too_much = reader.takes_too_much();
  }
  bytes.Clear();
  if (!checked.ok()) return checked;
  if (takes_too_much) return TakesTooMuchError(length, ParsedBytesMax(length));
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

absl::StatusOr<grpc::ByteBuffer> SerializeReply(const Reply& reply, const ReplyLimit& limit) {
  absl::Status fits = CheckReplySize(reply, limit.bytes_max, limit.remedy);
  if (fits.ok()) fits = CheckTimeToSend(reply.bytes(), limit);
  if (!fits.ok()) return fits;
  const auto slice = NewSlice(reply.bytes(), limit);
  if (!slice.ok()) return slice.status();
  auto* const begin = const_cast<std::uint8_t*>(slice->begin());  // ours alone so far
  [[maybe_unused]] const std::uint8_t* const end = reply.Write(begin);
  assert(end == slice->end());
  return grpc::ByteBuffer(&*slice, 1);
}

absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message,
                                                  const ReplyLimit& limit) {
  return SerializeReply(MessageReply(message), limit);
}

}  // namespace simile::service
