#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/access/access_control.h"
#include "service/access/permitted_collection.h"

namespace simile::service {

// What one call may do, and how much of its caller's allowance it holds until it ends. A
// default-constructed one permits everything. Belongs to the call.
class CallAccess {
 public:
  CallAccess() = default;
  explicit CallAccess(Caller caller) : caller_(std::move(caller)) {}
  ~CallAccess() {
    if (caller_.use) caller_.use->GiveBack(bytes_, queries_);
  }
  CallAccess(const CallAccess&) = delete;
  CallAccess& operator=(const CallAccess&) = delete;

  // Null when anyone may call.
  const Principal* principal() const { return caller_.principal.get(); }

  // The key to a collection, whether or not a collection of this name exists.
  // Errors: PERMISSION_DENIED.
  absl::StatusOr<PermittedCollection> Permit(std::string_view collection) const;
  // The key to what reports on all collections and all their rows.
  // Errors: PERMISSION_DENIED when some collections, rows or users do not exist for the caller.
  absl::StatusOr<PermittedServer> PermitServer() const;
  // Whether every collection, every row and every user exists for the caller.
  bool sees_all() const {
    return principal() == nullptr ||
           (principal()->collections.empty() && principal()->required_filter.empty() &&
            principal()->users.is_all());
  }
  // Count the bytes and the queries of the request as in flight until the call ends. Call each at
  // most once. Errors: CALLER_LIMIT.
  absl::Status HoldBytes(std::uint64_t bytes);
  absl::Status HoldQueries(std::uint64_t queries);

 private:
  Caller caller_;
  std::uint64_t bytes_ = 0;
  std::uint64_t queries_ = 0;
};

}  // namespace simile::service
