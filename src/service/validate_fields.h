#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/answer_options.h"
#include "service/field_path.h"
#include "simile/limits.h"

namespace simile::v1 {
class FetchRequest;
class LookupRequest;
}  // namespace simile::v1

namespace simile::service {

// Checks of single fields, shared by all requests. All errors are INVALID_FIELD; all checks are
// pure.

absl::Status CheckId(const FieldPath& field, std::string_view id, const Limits& limits);
// Checks that a call holds 1 to `most` queries or ids.
absl::Status CheckCount(const FieldPath& field, std::uint64_t count, std::uint32_t most);
absl::Status CheckK(const FieldPath& field, std::uint32_t k, const Limits& limits);
absl::Status CheckScoreThreshold(const FieldPath& field, float score_threshold);
absl::Status CheckFilterSize(const FieldPath& field, std::string_view filter, const Limits& limits);

// Whole requests of LookupService, except what needs the collection.
absl::StatusOr<AnswerOptions> ValidateFetch(const v1::FetchRequest& request, const Limits& limits);
absl::StatusOr<AnswerOptions> ValidateLookup(const v1::LookupRequest& request,
                                             const Limits& limits);

}  // namespace simile::service
