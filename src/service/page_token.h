#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

namespace simile::service {

// Where the next page of a call begins, and on what. Opaque to callers: 32 bytes as base64.
struct PageToken {
  std::uint64_t snapshot_version = 0;
  std::chrono::system_clock::time_point loaded_at{};  // with the version, one snapshot for good
  std::uint64_t page = 0;                             // pages before this one, from 1
  std::uint64_t request_hash = 0;                     // of the request without its token

  friend bool operator==(const PageToken&, const PageToken&) = default;
};

std::string WritePageToken(const PageToken& token);
// Errors: kInvalidArgument when this was never one.
absl::StatusOr<PageToken> ReadPageToken(std::string_view text);

}  // namespace simile::service
