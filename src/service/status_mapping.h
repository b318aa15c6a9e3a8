#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <absl/status/status.h>

namespace simile::service {

// Longest message sent with an error, bytes. It is percent-encoded (up to three bytes for one) in
// the trailing metadata, of which stock clients accept 8 KiB.
inline constexpr std::size_t kErrorMessageBytesMax = 2'000;

// Whether the server is at fault, so that the details go to the log only.
bool IsInternal(absl::StatusCode code);

// The message to send with an error: the error's own, cut at a whole character when it is too long;
// for internal errors only the request id to find the details in the log by.
std::string MessageForCaller(const absl::Status& status, std::string_view request_id);

}  // namespace simile::service
