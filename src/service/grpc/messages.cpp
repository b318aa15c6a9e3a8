#include "service/grpc/messages.h"

#include <cassert>
#include <cstddef>

#include <fmt/format.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "base/error_detail.h"
#include "service/reply_size.h"

namespace simile::service {

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

absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message,
                                                  const ReplyLimit& limit) {
  const std::size_t bytes = message.ByteSizeLong();
  if (bytes > limit.bytes_max) return ReplyTooLarge(bytes, limit.bytes_max, limit.remedy);
  const grpc::Slice slice(bytes);
  auto* const begin = const_cast<std::uint8_t*>(slice.begin());  // ours alone so far
  [[maybe_unused]] const std::uint8_t* const end = message.SerializeWithCachedSizesToArray(begin);
  assert(end == slice.end());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace simile::service
