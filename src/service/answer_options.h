#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/request_fields.h"
#include "simile/limits.h"

namespace simile::v1 {
class FetchRequest;
class LookupRequest;
class PayloadSelector;
}  // namespace simile::v1

namespace simile::service {

// The options that Search, Recommend, Fetch and Lookup share: which content and rows they answer
// from, what each row of the answer has, and how large the answer may be. Views of the request.
struct AnswerOptions {
  std::string_view expected_snapshot_id;  // empty for any
  std::string_view required_filter;       // empty for none
  const v1::PayloadSelector* payload = nullptr;
  bool with_vectors = false;
  bool with_rows = false;
  std::uint64_t reply_bytes_max = 0;
};

// Validates the options of a message. Errors: INVALID_FIELD. Pure.
//   parent   the field that has the options: "options"; null when the request has them itself
//   Message  SearchOptions, FetchRequest or LookupRequest
template <class Message>
absl::StatusOr<AnswerOptions> ValidateAnswerOptions(const FieldPath* parent, const Message& message,
                                                    const Limits& limits);

// Checks that a snapshot has the content that the caller expects.
//   expected  empty for any
//   id        of the snapshot
// Errors: SNAPSHOT_MISMATCH with both ids.
absl::Status CheckSnapshotId(const FieldPath& field, std::string_view expected,
                             std::string_view collection, const std::string& id);

// Validate whole requests of LookupService, except what needs the collection. Errors:
// INVALID_FIELD. Pure.
absl::StatusOr<AnswerOptions> ValidateFetch(const v1::FetchRequest& request, const Limits& limits);
absl::StatusOr<AnswerOptions> ValidateLookup(const v1::LookupRequest& request,
                                             const Limits& limits);

}  // namespace simile::service
