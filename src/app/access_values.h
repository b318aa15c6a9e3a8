#pragma once

#include <chrono>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/access/access_policy.h"

namespace simile::app {

// The values of an entry of the access file, as the file and `simile token` take them. Errors are
// kInvalidArgument and say what is wrong and what would be right; the caller adds the place.

// A principal's name: 1 to 128 bytes that look like what they are. It must be valid UTF-8.
absl::Status CheckPrincipalName(std::string_view name);

// Text that can be told from other text by looking at it: no control characters, no invisible ones,
// no space at its ends.
absl::Status CheckVisible(std::string_view text);

// SHA-256 in hexadecimal digits. Refuses what no token's hash can be, such as zeros
// among it, and the hashes of no token at all: of an empty text, a line end, the word TOKEN.
absl::StatusOr<service::TokenHash> ReadTokenHash(std::string_view text);

// When an access ends: a time as in "2027-05-31T12:00:00Z", or a day, at whose beginning in UTC it
// ends. From 1970 to 2262, which the clock can tell apart.
absl::StatusOr<std::chrono::system_clock::time_point> ReadExpiry(std::string_view text);

}  // namespace simile::app
