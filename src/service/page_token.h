#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace simile::service {

// Which page of which request on which content comes next. Good on any server that has the content,
// also after a restart. Opaque to callers.
struct PageToken {
  std::string snapshot_id;         // Snapshot::id: 32 lower-case hex digits
  std::uint64_t page = 0;          // pages before this one, from 1
  std::uint64_t request_hash = 0;  // HashRequest
  // Of the other collections whose items the queries name, in the order of the request; empty for
  // one that had no content on the first page.
  std::vector<std::string> item_snapshot_ids = {};

  friend bool operator==(const PageToken&, const PageToken&) = default;
};

// Text that is safe in a URL.
std::string WritePageToken(const PageToken& token);
// Errors: INVALID_PAGE_TOKEN for text that WritePageToken has not written: damaged, or of a server
//         that writes tokens of another format.
absl::StatusOr<PageToken> ReadPageToken(std::string_view text);

}  // namespace simile::service
