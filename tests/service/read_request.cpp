#include "service/read_request.h"

#include <memory>

#include <absl/status/status.h>
#include <google/protobuf/arena.h>

#include "service/grpc/messages.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

ReadOutcome ReadRequest(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto& request = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena);
  SentVectors vectors;
  const auto owner = std::make_shared<const std::string>(bytes);
  const absl::Status read = ParseRequest(*owner, owner, request, vectors);
  ReadOutcome result;
  if (!read.ok()) {
    result.message_or_error = read.ToString();
    return result;
  }
  for (int index = 0; index < request.queries_size(); ++index) {
    const std::string_view data = vectors.Data(static_cast<std::size_t>(index));
    if (data.empty()) continue;
    ++result.vectors_in_place;
    v1::PackedVector& vector = *request.mutable_queries(index)->mutable_packed_vector();
    // The data must be in one place only: a second copy in the message makes the results differ.
    vector.mutable_data()->append(data.data(), data.size());
  }
  result.message_or_error = request.SerializeAsString();
  return result;
}

std::string ParseByLibrary(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto& request = *google::protobuf::Arena::CreateMessage<v1::SearchRequest>(&arena);
  const absl::Status parsed = ParseMessage(bytes, request);
  return parsed.ok() ? request.SerializeAsString() : parsed.ToString();
}

}  // namespace simile::service
