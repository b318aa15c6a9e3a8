#include "service/rpc_environment.h"

#include "base/error_detail.h"

namespace simile::service {

absl::Status CallerGoneError() {
  return base::Error(base::ErrorReason::kCancelled,
                     "the caller gave up before the answer was sent");
}

absl::Status StoppingError() {
  return base::Error(base::ErrorReason::kStopping,
                     "the server is stopping; retry on another server, or later");
}

}  // namespace simile::service
