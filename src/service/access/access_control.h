#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include "net/token_bucket.h"
#include "service/access/access_policy.h"
#include "simile/clock.h"

namespace simile::service {

// What a principal has under way and how often it has called lately. Outlives changes of the access
// file, so a new file gives nobody a fresh allowance. Safe to use from any thread.
class PrincipalUse {
 public:
  // Counts a call.
  // Errors: CALLER_LIMIT, with when to try again.
  absl::Status CountCall(const Principal& principal, const Clock& clock);
  // Count the amount as in flight until GiveBack.
  // Errors: CALLER_LIMIT. An amount that alone exceeds the limit is refused without a time to try
  // again.
  absl::Status HoldBytes(const Principal& principal, std::uint64_t bytes);
  absl::Status HoldQueries(const Principal& principal, std::uint64_t queries);
  void GiveBack(std::uint64_t bytes, std::uint64_t queries);

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t queries() const { return queries_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  // guards calls_
  std::optional<net::TokenBucket> calls_;

  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> queries_ = 0;
};

// Who makes a call. Empty while there is no policy.
struct Caller {
  // What identified the principal: a token, or else a certificate with these names.
  std::optional<TokenHash> token_hash;
  std::vector<std::string> certificate_names;
  PrincipalPtr principal;
  std::shared_ptr<PrincipalUse> use;  // of the principal; null without one
};

// What a call sends to identify its caller.
struct Credentials {
  std::string_view authorization;  // the metadata entry; empty for none
  bool is_repeated = false;        // several `authorization` entries were sent
  // Returns the names in the client's certificate, which TLS has verified. Called only when the
  // policy names certificates.
  absl::FunctionRef<std::vector<std::string>()> certificate_names;
};

// Decides which calls are admitted. Without a policy every call is admitted, and the server's
// switches decide about changes and administration. Owned by the RPC services. Safe to use from any
// thread.
class AccessControl {
 public:
  explicit AccessControl(const Clock& clock) : clock_(clock) {}

  // Applies the policy from now on; null admits every call. Calls that were admitted before
  // continue.
  void SetPolicy(std::shared_ptr<const AccessPolicy> policy);
  std::shared_ptr<const AccessPolicy> policy() const;

  // Finds the caller of a method and counts the call. A token takes precedence over a certificate.
  //   method  "simile.v1.SearchService/Search", for messages
  // Errors: UNAUTHENTICATED, PERMISSION_DENIED, CALLER_LIMIT.
  absl::Status Admit(std::string_view method, Role needed, const Credentials& credentials,
                     Caller& caller);
  // Admits another request of an admitted caller: checks the same token or certificate against the
  // current policy, and counts the call.
  // Errors: as Admit.
  absl::Status AdmitAgain(std::string_view method, Role needed, Caller& caller);

  // Returns the names of principals whose token hash includes the line end that `echo` adds. Only
  // principals whose token was refused for this since the last call of this method. Sorted,
  // distinct.
  std::vector<std::string> RemoveNamesWithLineEnd();

 private:
  // Records the principal whose hash is the hash of this token with a line end after it.
  void RecordLineEnd(const AccessPolicy& policy, std::string_view token);
  absl::Status CheckPrincipal(std::string_view method, Role needed, PrincipalPtr principal,
                              Caller& caller);
  std::shared_ptr<PrincipalUse> FindOrAddUse(const std::string& name);

  const Clock& clock_;
  mutable std::mutex mutex_;                                   // guards the members below
  std::shared_ptr<const AccessPolicy> policy_;                 // null: everyone may call
  std::map<std::string, std::shared_ptr<PrincipalUse>> uses_;  // by the principal's name
  std::set<std::string> names_with_line_end_;
};

}  // namespace simile::service
