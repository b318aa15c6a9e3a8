#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace simile::v1 {
class ExportRequest;
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// Names the next page: its request, its place, and the content that it reads. Valid on any server
// that has the content, also after a restart. Opaque to callers.
struct PageToken {
  std::string snapshot_id;         // Snapshot::id: 32 lower-case hex digits
  std::uint64_t page = 0;          // pages before this one, from 1
  std::uint64_t request_hash = 0;  // HashRequest
  // The snapshots of the other collections whose items the queries name, in the request's order.
  // Empty for a collection that had no content on the first page.
  std::vector<std::string> item_snapshot_ids = {};

  friend bool operator==(const PageToken&, const PageToken&) = default;
};

// Encodes a token as text that is safe in a URL.
std::string WritePageToken(const PageToken& token);
// Errors: INVALID_PAGE_TOKEN for text that WritePageToken has not written: damaged, or of a server
//         that writes tokens of another format.
absl::StatusOr<PageToken> ReadPageToken(std::string_view text);

// Hashes the request that a page token continues: its kind and all its fields. Leaves out options
// that may differ from page to page, because they change no result: paged, page_token,
// reply_bytes_max, expected_snapshot_id, receipt_detail, priority and layout. Equal requests hash
// alike in every process and on every machine. Cost: one serialization of the request.
std::uint64_t HashRequest(const v1::SearchRequest& request);
std::uint64_t HashRequest(const v1::RecommendRequest& request);
std::uint64_t HashRequest(const v1::ExportRequest& request);

// Encodes where a page of collections begins: after a name. So no collection is left out or listed
// twice when collections come and go between two pages. Opaque to callers, safe in a URL, valid on
// any server.
std::string WriteCollectionPageToken(std::string_view last_name);
// The name after which the page begins; empty for the first page.
// Errors: INVALID_PAGE_TOKEN for text that WriteCollectionPageToken has not written.
absl::StatusOr<std::string> ReadCollectionPageToken(std::string_view token);

}  // namespace simile::service
