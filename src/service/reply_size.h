#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "service/call.h"

namespace simile::service {

// REPLY_TOO_LARGE: the response may not have as many bytes as it has.
//   bytes   of the whole response message, serialized
//   remedy  what the caller can do: "lower k, ..."
absl::Status ReplyTooLarge(std::uint64_t bytes, std::uint64_t bytes_max, std::string_view remedy);

// The same, before the response is built.
//   bytes_min  the response has more than this
absl::Status ReplyTooLargeToBuild(std::uint64_t bytes_min, std::uint64_t bytes_max,
                                  std::string_view remedy);

// Refuses a reply so large that counting its bytes ended at `counted_max`. The call itself refuses
// any other that is too large (Call::FinishWith).
absl::Status CheckCounted(const Reply& reply, std::uint64_t counted_max, std::uint64_t bytes_max,
                          std::string_view remedy);

}  // namespace simile::service
