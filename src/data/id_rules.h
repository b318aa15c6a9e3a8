#pragma once

#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Checks an id: not empty, at most limits.id_bytes_max bytes, no control characters.
// REQUIRES: valid UTF-8.
// Errors: kInvalidArgument, "is empty; ..."; the caller adds the place.
absl::Status CheckId(std::string_view id, const Limits& limits);

// The id in a JSON value: a string, or an integer's decimal digits, of 12.0 those of 12. Errors
// likewise.
absl::StatusOr<std::string> IdFrom(const PayloadValue& value, const Limits& limits);

}  // namespace simile::data
