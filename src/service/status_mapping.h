#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <absl/status/status.h>

namespace simile::service {

// Longest message sent with an error, bytes. It travels percent-encoded in the trailing metadata,
// of which stock clients take 8 KiB in all; an encoded byte is up to three.
inline constexpr std::size_t kErrorMessageBytesMax = 2'000;

// "OK", "NOT_FOUND", ...: as gRPC writes them, for logs and metrics.
std::string_view CodeName(absl::StatusCode code);

// Whether the error is our own fault or the machine's, whose details belong into the log only.
bool IsInternal(absl::StatusCode code);

// The message to send with an error: the error's own, cut at a whole character when it is too long;
// for internal errors only the request id under which the log has the details.
std::string MessageForCaller(const absl::Status& status, std::string_view request_id);

}  // namespace simile::service
