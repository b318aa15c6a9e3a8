#include "service/access/call_access.h"

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {

absl::StatusOr<PermittedCollection> CallAccess::Permit(std::string_view collection) const {
  if (principal() == nullptr || principal()->MaySee(collection)) {
    return PermittedCollection(collection, caller_.principal);
  }
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format("{} may not use the collection {}; it may use {}", principal()->name,
                  base::Quoted(collection), fmt::join(principal()->collections, ", ")),
      "collection");
}

absl::StatusOr<PermittedServer> CallAccess::PermitServer() const {
  if (sees_all()) return PermittedServer();
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format("this reports on all collections and rows, and {} may see only some of them",
                  principal()->name));
}

absl::Status CallAccess::HoldBytes(std::uint64_t bytes) {
  if (caller_.use == nullptr) return absl::OkStatus();
  absl::Status held = caller_.use->HoldBytes(*caller_.principal, bytes);
  if (held.ok()) bytes_ = bytes;
  return held;
}

absl::Status CallAccess::HoldQueries(std::uint64_t queries) {
  if (caller_.use == nullptr) return absl::OkStatus();
  absl::Status held = caller_.use->HoldQueries(*caller_.principal, queries);
  if (held.ok()) queries_ = queries;
  return held;
}

}  // namespace simile::service
