#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/load/user_scope.h"

namespace simile::service {

// What a method requires of its caller. Each role includes the roles before it.
enum class Role : std::uint8_t {
  kNone,   // anyone may call: health checks
  kRead,   // searches, looks up, lists
  kWrite,  // loads, reloads, rolls back, unloads
  kAdmin,  // reads metrics and probes
};
std::string_view NameOf(Role role);  // "read"
std::optional<Role> RoleNamed(std::string_view name);

using TokenHash = std::array<std::uint8_t, 32>;  // SHA-256

// How much one principal may take at a time. 0: no limit of its own.
struct PrincipalLimits {
  double calls_per_second = 0;  // the calls of one second may come at once
  std::uint64_t queries_in_flight = 0;
  std::uint64_t bytes_in_flight = 0;  // of requests

  friend bool operator==(const PrincipalLimits&, const PrincipalLimits&) = default;
};

// Someone who may call, and what they may do. Immutable.
struct Principal {
  std::string name;
  Role role = Role::kRead;
  // Any of these identifies the principal. Certificates are named by a DNS name, a URI or an e-mail
  // address among their alternative names, or by their common name.
  std::vector<TokenHash> token_hashes;
  std::vector<std::string> certificate_names;
  std::vector<std::string> collections;  // the only ones that exist for it; empty: all
  std::string required_filter;           // rows that do not pass do not exist for it
  data::UserScope users;                 // the only users that exist for it
  std::optional<std::chrono::system_clock::time_point> expires_at;
  PrincipalLimits limits;

  bool MaySee(std::string_view collection) const;
};

using PrincipalPtr = std::shared_ptr<const Principal>;

// SHA-256 of a token.
TokenHash HashToken(std::string_view token);
// Whether two hashes are equal, in a time that does not depend on where they differ.
bool EqualHashes(const TokenHash& a, const TokenHash& b);

// All principals of an access file. Immutable; safe to use from any thread.
class AccessPolicy {
 public:
  // REQUIRES: no two principals share a name, a token's hash or a certificate's name.
  explicit AccessPolicy(std::vector<Principal> principals);

  // Null when nobody has the token. Compares the hash with every known hash, each in constant time,
  // so the time reveals nothing about them. O(token hashes), about 10 ns each.
  PrincipalPtr FindToken(const TokenHash& hash) const;
  // The first principal that has any of the names; null when none has.
  PrincipalPtr FindCertificate(std::span<const std::string> names) const;

  std::span<const PrincipalPtr> principals() const { return principals_; }
  bool uses_tokens() const { return !hashes_.empty(); }
  bool uses_certificates() const { return uses_certificates_; }

 private:
  struct Hash {
    TokenHash hash;
    std::size_t principal;
  };

  std::vector<PrincipalPtr> principals_;
  std::vector<Hash> hashes_;
  bool uses_certificates_ = false;
};

}  // namespace simile::service
