#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "service/call.h"
#include "service/collection_message.h"
#include "simile/limits.h"

namespace simile::v1 {
class GetServerInfoResponse;
}

namespace simile::service {

// What the handlers of AdminService use. Owned by wiring.
struct AdminParts {
  const ServingBackend& backend;
  const Limits& limits;
  bool changes_allowed = false;
  std::chrono::system_clock::time_point started_at;
};

// What a client may rely on in this server: a name for each ability that an older server lacks. A
// name stays as long as the ability; docs/api.md says what each means.
std::span<const std::string_view> Capabilities();

// Finishes the call before it returns; does not throw.
void HandleGetServerInfo(const AdminParts& parts, Call& call, v1::GetServerInfoResponse& response);

}  // namespace simile::service
