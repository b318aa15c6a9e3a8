#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

namespace simile::service {

// Which page of which request on which snapshot comes next. Opaque to callers: 32 bytes as base64.
struct PageToken {
  std::uint64_t snapshot_version = 0;
  std::chrono::system_clock::time_point loaded_at{};  // with the version identifies the snapshot
  std::uint64_t page = 0;                             // pages before this one, from 1
  std::uint64_t request_hash = 0;                     // HashRequest

  friend bool operator==(const PageToken&, const PageToken&) = default;
};

std::string WritePageToken(const PageToken& token);
// Errors: kInvalidArgument for text that WritePageToken cannot have written.
absl::StatusOr<PageToken> ReadPageToken(std::string_view text);

}  // namespace simile::service
