#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/load/user_scope.h"
#include "service/access/access_control.h"
#include "service/access/access_policy.h"

namespace simile::service {

class CallAccess;

// A collection that a call may use, the rights of its caller, and which rows exist for the caller.
// Only CallAccess makes one. ServedCollections opens with nothing else, so a handler that forgets
// the rights of its caller does not compile. Cheap to copy; safe to share.
class PermittedCollection {
 public:
  const std::string& name() const { return name_; }
  // Whether every row exists for the caller.
  bool sees_all_rows() const { return required_filter().empty(); }
  // A row that does not pass does not exist for the caller; empty: all rows exist. Lives as long as
  // this object.
  std::string_view required_filter() const;
  // The users that exist for the caller.
  data::UserScope users() const;
  // Whether every row and every user exists for the caller.
  bool sees_all_rows_and_users() const { return sees_all_rows() && users().is_all(); }
  // Whether every collection exists for the caller: its access is not bound to some by name.
  bool sees_all_collections() const;

  // Checks that the caller's role may load, reload, roll back and unload.
  // Errors: PERMISSION_DENIED.
  absl::Status CheckMayChange() const;
  // Checks that the collection may be loaded from this folder of the data root; empty: from where
  // it was loaded before. A caller that is bound to collections may load each from the folder of
  // its name and from folders inside. Other folders may hold collections that the caller may not
  // use.
  // Errors: PERMISSION_DENIED.
  absl::Status CheckFolder(std::string_view folder) const;

  // The error without the names of collections that do not exist for the caller.
  absl::Status WithoutOtherNames(const absl::Status& status) const;

 private:
  friend class CallAccess;
  //   principal  null: anyone may do all
  PermittedCollection(std::string_view name, PrincipalPtr principal);

  std::string name_;
  PrincipalPtr principal_;
};

// Proves that a call may see every row and every collection. Only CallAccess makes one. What
// reports on all collections at once, such as the metrics, requires it.
class PermittedServer {
 private:
  friend class CallAccess;
  PermittedServer() = default;
};

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
