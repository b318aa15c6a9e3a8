#pragma once

#include <cstdint>

namespace simile::v1 {
class ExportRequest;
class RecommendRequest;
class SearchRequest;
}  // namespace simile::v1

namespace simile::service {

// Identifies the request that a page token continues: a hash of its kind and of all its fields but
// the options that may differ from page to page, since they change no result of an answer (paged,
// page_token, reply_bytes_max, expected_snapshot_id, receipt_detail and priority). Equal requests
// hash alike in every process and on every machine. Cost: one serialization of the request.
std::uint64_t HashRequest(const v1::SearchRequest& request);
std::uint64_t HashRequest(const v1::RecommendRequest& request);
std::uint64_t HashRequest(const v1::ExportRequest& request);

}  // namespace simile::service
