#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "service/field_path.h"
#include "simile/limits.h"

namespace simile::v1 {
class FetchRequest;
class LookupRequest;
}  // namespace simile::v1

namespace simile::service {

// Checks of single fields, shared by all requests. All errors are kInvalidArgument and name the
// field; all checks are pure.

absl::Status CheckId(const FieldPath& field, std::string_view id, const Limits& limits);
// Checks that a call holds 1 to `most` queries or ids.
absl::Status CheckCount(const FieldPath& field, std::uint64_t count, std::uint32_t most);
absl::Status CheckK(const FieldPath& field, std::uint32_t k, const Limits& limits);
absl::Status CheckScoreThreshold(const FieldPath& field, float score_threshold);
// Checks how many payload fields are named, and that none is when `without_payload` is set.
absl::Status CheckPayloadChoice(const FieldPath& field, int field_count, bool without_payload,
                                const Limits& limits);

// Whole requests of LookupService, except what needs the collection.
absl::Status ValidateFetch(const v1::FetchRequest& request, const Limits& limits);
absl::Status ValidateLookup(const v1::LookupRequest& request, const Limits& limits);

}  // namespace simile::service
