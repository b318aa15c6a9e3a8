#pragma once

#include <utility>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::service {

// The same error for another thread to keep. A copy of an absl::Status shares the original's text
// by a reference count inside absl's library, which ThreadSanitizer cannot see.
inline absl::Status UnsharedError(const absl::Status& error) {
  if (error.ok()) return error;
  absl::Status copy =
      base::Error(base::ReasonOf(error), {error.message().data(), error.message().size()},
                  base::FieldOf(error));
  if (const auto wait = base::ReadRetryAfter(error))
    copy = base::WithRetryAfter(std::move(copy), *wait);
  return copy;
}

}  // namespace simile::service
