#pragma once

#include <cstdint>
#include <filesystem>

#include <absl/status/status.h>

namespace simile::service {

// Writes the port as decimal text and a line feed, so that whoever waits for the file never reads
// half of it: a file beside it is written first and renamed over it.
// Errors: kUnavailable naming the file and what the system said.
absl::Status WritePortFile(const std::filesystem::path& file, std::uint16_t port);

}  // namespace simile::service
