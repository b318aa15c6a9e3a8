#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/limits.h"
#include "simile/query.h"

namespace simile::v1 {
class FetchRequest;
class LookupRequest;
}  // namespace simile::v1

namespace simile::service {

// Checks of single fields of requests, shared by all of them. `field` is what a message calls the
// field: "queries[3].id". All errors are kInvalidArgument; all checks are pure.

absl::Status CheckId(std::string_view field, std::string_view id, const Limits& limits);
// How many queries or ids a call holds: 1 to `most`.
absl::Status CheckCount(std::string_view field, std::uint64_t count, std::uint32_t most);
absl::Status CheckK(std::string_view field, std::uint32_t k, const Limits& limits);
absl::Status CheckScoreThreshold(std::string_view field, float score_threshold);
// How many payload fields are named, and that they are not named along with `without_payload`.
absl::Status CheckPayloadChoice(std::string_view field, int field_count, bool without_payload,
                                const Limits& limits);

// Whole requests of LookupService, as far as they can be checked without the collection.
absl::Status ValidateFetch(const v1::FetchRequest& request, const Limits& limits);
absl::Status ValidateLookup(const v1::LookupRequest& request, const Limits& limits);

}  // namespace simile::service
