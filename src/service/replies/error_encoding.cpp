#include "service/replies/error_encoding.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include "base/error_detail.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace simile::service {
namespace {

constexpr std::string_view kDomain = "simile";
constexpr std::string_view kEllipsis = "...";
// Tags, lengths and type names of the details, with a request id and a field's path.
constexpr std::size_t kDetailBytesMax = 700;

// What a byte of the message costs, in thirds of a byte of metadata. In the details, as base64,
// three bytes become four. In the entry grpc-message, which is percent-encoded, one byte stays one
// or becomes three.
std::size_t ThirdsOfMetadata(char byte) {
  const bool plain = byte >= ' ' && byte <= '~' && byte != '%';
  return 4 + (plain ? 3 : 9);
}

// The longest prefix within bytes_max that does not cut a UTF-8 sequence in two.
std::string_view WholeCharacters(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string Cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  return std::string(WholeCharacters(text, bytes_max - kEllipsis.size())).append(kEllipsis);
}

// How many bytes of the message fit into the metadata.
std::size_t MessageBytesMax(std::string_view message) {
  constexpr std::size_t kDetailThirds = 4 * (kFieldDescriptionBytesMax + kDetailBytesMax);
  std::size_t thirds_left = 3 * kErrorMetadataBytesMax - kDetailThirds;
  std::size_t bytes = 0;
  while (bytes < message.size() && bytes < kErrorMessageBytesMax) {
    const std::size_t cost = ThirdsOfMetadata(message[bytes]);
    if (cost > thirds_left) break;
    thirds_left -= cost;
    ++bytes;
  }
  return bytes;
}

std::string MessageForCaller(const absl::Status& error, std::string_view request_id) {
  if (IsServerFault(error)) {
    return fmt::format("internal error; the server's log has the details under request id {}",
                       request_id);
  }
  const std::string_view message(error.message().data(), error.message().size());
  return Cut(message, MessageBytesMax(message));
}

void AddRetry(std::chrono::milliseconds wait, google::rpc::Status& encoded) {
  google::rpc::RetryInfo retry;
  constexpr std::int64_t kMillisecondsPerSecond = 1'000;
  constexpr std::int32_t kNanosecondsPerMillisecond = 1'000'000;
  retry.mutable_retry_delay()->set_seconds(wait.count() / kMillisecondsPerSecond);
  retry.mutable_retry_delay()->set_nanos(
      static_cast<std::int32_t>(wait.count() % kMillisecondsPerSecond) *
      kNanosecondsPerMillisecond);
  encoded.add_details()->PackFrom(retry);
}

}  // namespace

bool IsServerFault(const absl::Status& error) {
  return base::ReasonOf(error) == base::ErrorReason::kInternal;
}

google::rpc::Status EncodeError(const absl::Status& error, std::string_view request_id) {
  const base::ErrorReasonInfo& reason = base::InfoOf(base::ReasonOf(error));
  google::rpc::Status encoded;
  encoded.set_code(static_cast<std::int32_t>(reason.code));
  encoded.set_message(MessageForCaller(error, request_id));

  // On an arena, which destroys no messages: the destructor of a map fails after the map could not
  // get memory to grow.
  google::protobuf::Arena arena;
  auto& info = *google::protobuf::Arena::CreateMessage<google::rpc::ErrorInfo>(&arena);
  info.set_reason(std::string(reason.name));
  info.set_domain(std::string(kDomain));
  (*info.mutable_metadata())["request_id"] = std::string(request_id);
  encoded.add_details()->PackFrom(info);
  if (IsServerFault(error)) return encoded;

  if (const std::string field = base::FieldOf(error); !field.empty()) {
    google::rpc::BadRequest bad;
    google::rpc::BadRequest::FieldViolation& violation = *bad.add_field_violations();
    violation.set_field(Cut(field, kFieldDescriptionBytesMax));
    violation.set_description(Cut(encoded.message(), kFieldDescriptionBytesMax));
    encoded.add_details()->PackFrom(bad);
  }
  if (const auto wait = base::ReadRetryAfter(error)) AddRetry(*wait, encoded);
  return encoded;
}

}  // namespace simile::service
