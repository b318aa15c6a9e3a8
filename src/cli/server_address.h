#pragma once

#include <string>
#include <string_view>

#include <absl/status/statusor.h>

namespace simile::cli {

// The address HOST:PORT that a text names; HOST alone is its port 50051. An IPv6 address needs
// brackets.
// Errors: kInvalidArgument, `give HOST:PORT, without "http://"`.
absl::StatusOr<std::string> ParseServerAddress(std::string_view text);

}  // namespace simile::cli
