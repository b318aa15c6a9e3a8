#pragma once

#include <cstddef>
#include <string_view>

#include <absl/status/status.h>

namespace google::rpc {
class Status;
}

namespace simile::service {

// Longest message sent with an error, bytes.
inline constexpr std::size_t kErrorMessageBytesMax = 2'000;
// Longest description of a field's error in the details, which repeats the message.
inline constexpr std::size_t kFieldDescriptionBytesMax = 256;
// Most bytes that message and details take in a call's trailing metadata. Stock clients accept 8
// KiB; the rest is for other entries.
inline constexpr std::size_t kErrorMetadataBytesMax = 6'800;

// Whether the server is at fault, so that the details go to the log only.
bool IsServerFault(const absl::Status& error);

// Encodes an error as callers receive it: the code and name of its reason (base/error_detail.h);
// its message, cut at a whole character when it is too long; and google.rpc's ErrorInfo, BadRequest
// when a field is wrong, and RetryInfo when the caller may try again. Of a fault of the server the
// caller learns only the request id, under which the log has the details. REQUIRES: !error.ok()
google::rpc::Status EncodeError(const absl::Status& error, std::string_view request_id);

}  // namespace simile::service
