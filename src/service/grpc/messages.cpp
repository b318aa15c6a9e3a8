#include "service/grpc/messages.h"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>

#include <fmt/format.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "base/error_detail.h"
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

// gRPC ends the process when its own allocation fails, so a slice that could be too large for the
// memory is allocated here, and counted until gRPC lets go of it.
constexpr std::size_t kSmallBytes = 64U << 10;

// The memory of a large response.
class LargeBlock {
 public:
  // May throw bad_alloc.
  explicit LargeBlock(std::size_t bytes)
      : bytes_(bytes), memory_(std::make_unique_for_overwrite<std::uint8_t[]>(bytes)) {}
  ~LargeBlock() {
    if (counted_by_ != nullptr) counted_by_->Remove(bytes_);
  }
  LargeBlock(const LargeBlock&) = delete;
  LargeBlock& operator=(const LargeBlock&) = delete;

  bool CountIn(UnsentReplies& unsent) {
    if (!unsent.Add(bytes_)) return false;
    counted_by_ = unsent.shared_from_this();
    return true;
  }
  std::uint8_t* begin() const { return memory_.get(); }

 private:
  const std::size_t bytes_;
  const std::unique_ptr<std::uint8_t[]> memory_;
  std::shared_ptr<UnsentReplies> counted_by_;
};

absl::Status TooMuchUnreadError() {
  constexpr std::chrono::seconds kRetryAfter{1};
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  "replies that wait to be read leave no memory for this one; try again, ask for "
                  "less, or ask another server"),
      kRetryAfter);
}

absl::StatusOr<grpc::Slice> NewSlice(std::size_t bytes, UnsentReplies* unsent) {
  if (bytes <= kSmallBytes) return grpc::Slice(bytes);
  auto block = std::make_unique<LargeBlock>(bytes);
  if (unsent != nullptr && !block->CountIn(*unsent)) return TooMuchUnreadError();
  std::uint8_t* const begin = block->begin();
  return grpc::Slice(
      begin, bytes, [](void* owner) { delete static_cast<LargeBlock*>(owner); }, block.release());
}

}  // namespace

absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    // Without any bytes, not even those of an empty message, there is nothing to read.
    parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
  }
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return base::Error(base::ErrorReason::kRequestNotParsed,
                     fmt::format("could not be parsed as {}", message.GetTypeName()));
}

absl::StatusOr<grpc::ByteBuffer> SerializeReply(const Reply& reply, const ReplyLimit& limit) {
  const std::size_t bytes = reply.bytes();
  if (bytes > limit.bytes_max) return ReplyTooLarge(bytes, limit.bytes_max, limit.remedy);
  const auto slice = NewSlice(bytes, limit.unsent);
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
