#pragma once

#include <string>
#include <string_view>

#include <absl/status/statusor.h>

namespace simile::service {

// Where a page of collections begins: after a name, so that none is left out or listed twice when
// others come and go between two pages. Opaque to callers, safe in a URL, good on any server.
std::string WriteCollectionPageToken(std::string_view last_name);
// The name after which the page begins; empty for the first page.
// Errors: INVALID_PAGE_TOKEN for text that WriteCollectionPageToken has not written.
absl::StatusOr<std::string> ReadCollectionPageToken(std::string_view token);

}  // namespace simile::service
