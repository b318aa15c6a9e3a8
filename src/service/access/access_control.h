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
// file, so that a new one gives nobody a fresh allowance. Safe to use from any thread.
class PrincipalUse {
 public:
  // Counts a call.
  // Errors: CALLER_LIMIT, with when to try again.
  absl::Status CountCall(const Principal& principal, const Clock& clock);
  // Holds so much until it is given back.
  // Errors: CALLER_LIMIT. What alone is more than the limit is refused without a time to try again.
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

// Who makes a call: nobody in particular while there is no policy.
struct Caller {
  // What identified the principal: a token, or else a certificate with these names.
  std::optional<TokenHash> token_hash;
  std::vector<std::string> certificate_names;
  PrincipalPtr principal;
  std::shared_ptr<PrincipalUse> use;  // of the principal; null without one
};

// What a call says of its caller.
struct Credentials {
  std::string_view authorization;  // the metadata entry; empty for none
  bool is_repeated = false;        // there are several such entries
  // The names in the client's certificate, once TLS has verified it. Asked for only when the policy
  // has names of certificates.
  absl::FunctionRef<std::vector<std::string>()> certificate_names;
};

// Decides which calls are taken. Without a policy all are, and the server's switches decide about
// changes and administration. Owned by the RPC services. Safe to use from any thread.
class AccessControl {
 public:
  explicit AccessControl(const Clock& clock) : clock_(clock) {}

  // From now on. Calls that were admitted go on.
  void SetPolicy(std::shared_ptr<const AccessPolicy> policy);
  std::shared_ptr<const AccessPolicy> policy() const;

  // Finds the caller of a method and counts the call. A token goes before a certificate.
  //   method  "simile.v1.SearchService/Search", for messages
  // Errors: UNAUTHENTICATED, PERMISSION_DENIED, CALLER_LIMIT.
  absl::Status Admit(std::string_view method, Role needed, const Credentials& credentials,
                     Caller& caller);
  // For another request of a caller that was admitted: whether the policy of now admits the same
  // token or certificate. Counts it.
  // Errors: the same.
  absl::Status AdmitAgain(std::string_view method, Role needed, Caller& caller);

  // The principals whose hash was made from a token and the line end that `echo` prints behind the
  // token: each token alone was refused since the last call of this method. In order, distinct.
  std::vector<std::string> RemoveNamesWithLineEnd();

 private:
  // Records the principal whose hash is that of the token with a line end behind the token.
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
