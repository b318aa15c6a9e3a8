#pragma once

#include <utility>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::data {

// An error of reading a collection, with its reason: DOES_NOT_FIT for lack of memory, FILES_CHANGED
// where the readers say so, and otherwise INVALID_FILES, however a file is missing or wrong.
inline absl::Status LoadError(absl::Status error) {
  const bool no_memory = error.code() == absl::StatusCode::kResourceExhausted;
  return base::WithReason(std::move(error), no_memory ? base::ErrorReason::kDoesNotFit
                                                      : base::ErrorReason::kInvalidFiles);
}

}  // namespace simile::data
