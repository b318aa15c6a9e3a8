#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/payload/payload_table.h"
#include "filter/payload_view.h"
#include "service/requests/request_fields.h"
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

// The payload fields of an answer, as field numbers of one snapshot's table.
struct PayloadSelection {
  bool none = false;
  bool all = false;                          // objects as a whole
  std::vector<std::uint32_t> field_numbers;  // ascending, distinct; used when neither all nor none

  bool Has(std::uint32_t field_number) const {
    return all || std::binary_search(field_numbers.begin(), field_numbers.end(), field_number);
  }
};

// Checks of a selector what can be checked without the collection.
// Errors: INVALID_FIELD for an unknown selection, for fields named beside one, and for too many.
absl::Status CheckPayloadSelector(const FieldPath& field, const v1::PayloadSelector& selector,
                                  const Limits& limits);

// Finds the fields that a selector names.
//   field       of the selector, for errors
//   collection  its name, for messages
//   fields      that exist for the caller
// REQUIRES: CheckPayloadSelector allows it.
// Errors: UNKNOWN_PAYLOAD_FIELD for a field that no row of the caller has, with the nearest one and
// a list of all.
absl::StatusOr<PayloadSelection> SelectPayload(const FieldPath& field, std::string_view collection,
                                               const v1::PayloadSelector& selector,
                                               const data::PayloadTable& payload,
                                               const filter::PayloadView& fields);

}  // namespace simile::service
