#include "service/rpc_environment.h"

#include "base/error_detail.h"

namespace simile::service {

absl::Status RpcEnvironment::Enter() {
  if (!gate.Enter()) {
    metrics.CountRejected(observe::Rejection::kDraining);
    return StoppingError();
  }
  metrics.AddRequestsInFlight(1);
  return absl::OkStatus();
}

void RpcEnvironment::Leave() {
  metrics.AddRequestsInFlight(-1);
  gate.Leave();
}

absl::Status StoppingError() {
  return base::Error(base::ErrorReason::kStopping,
                     "the server is stopping; retry on another server, or later");
}

}  // namespace simile::service
