#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "service/access/access_control.h"

namespace simile::service {

// What one call may do, and what it holds of its caller's allowance until it ends. By default
// anyone may do all. Belongs to the call.
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
  // Whether only some collections exist for the caller.
  bool is_bound() const { return principal() != nullptr && !principal()->collections.empty(); }
  // Which rows exist for the caller; empty: all.
  std::string_view required_filter() const {
    return caller_.principal ? std::string_view(caller_.principal->required_filter) : "";
  }

  // Errors: PERMISSION_DENIED, whether or not there is such a collection.
  absl::Status CheckCollection(std::string_view collection) const;
  // Whether the collection may be loaded from this folder of the data root; empty: from where it
  // was loaded before. A caller that is bound to collections has for each the folder of its name
  // and those inside, because the others may hold collections that it may not use. Errors:
  // PERMISSION_DENIED.
  absl::Status CheckFolder(std::string_view collection, std::string_view folder) const;
  // For what says something of all rows.
  // Errors: PERMISSION_DENIED when only some exist for the caller.
  absl::Status CheckSeesAllRows(std::string_view collection) const;
  // Errors: CALLER_LIMIT. To be called once each.
  absl::Status HoldBytes(std::uint64_t bytes);
  absl::Status HoldQueries(std::uint64_t queries);

 private:
  Caller caller_;
  std::uint64_t bytes_ = 0;
  std::uint64_t queries_ = 0;
};

}  // namespace simile::service
