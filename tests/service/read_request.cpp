#include "service/read_request.h"

#include <absl/status/status.h>
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include "service/grpc/messages.h"
#include "service/grpc/search_request_reader.h"
#include "service/sliced_buffer.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

ReadOutcome ReadRequest(std::string_view bytes, std::size_t slice_bytes) {
  google::protobuf::Arena arena;
  auto& request = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena);
  SentVectors vectors;
  grpc::ByteBuffer buffer = BufferOf(bytes, slice_bytes);
  const absl::Status read = ParseRequest(buffer, request, vectors);
  ReadOutcome result;
  result.released = buffer.Length() == 0;
  if (!read.ok()) {
    result.message_or_error = read.ToString();
    return result;
  }
  for (int index = 0; index < request.queries_size(); ++index) {
    const std::string_view data = vectors.Of(static_cast<std::size_t>(index));
    if (data.empty()) continue;
    ++result.vectors_in_place;
    v1::PackedVector& vector = *request.mutable_queries(index)->mutable_packed_vector();
    // The data is in one place: a copy in the message, too, makes the results differ.
    vector.mutable_data()->append(data.data(), data.size());
  }
  result.message_or_error = request.SerializeAsString();
  return result;
}

std::string ParseByLibrary(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto& request = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena);
  grpc::ByteBuffer buffer = BufferOf(bytes, bytes.size());
  const absl::Status parsed = ParseMessage(buffer, request);
  return parsed.ok() ? request.SerializeAsString() : parsed.ToString();
}

}  // namespace simile::service
