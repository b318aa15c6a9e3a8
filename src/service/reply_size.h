#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "service/call.h"

namespace simile::service {

// REPLY_TOO_LARGE when the response has more bytes than it may.
//   remedy  what the caller can do: "lower k, ..."
absl::Status CheckReplySize(const Reply& reply, std::uint64_t bytes_max, std::string_view remedy);

// The same, before the response is built.
//   bytes_min  the response has more than this
absl::Status ReplyTooLargeToBuild(std::uint64_t bytes_min, std::uint64_t bytes_max,
                                  std::string_view remedy);

}  // namespace simile::service
