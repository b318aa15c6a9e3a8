#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/access/principal.h"

namespace simile::service {

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

  // Null when nobody has the token. Compares its hash with every hash there is, each in constant
  // time, so that the time says nothing of them: O(principals), about 10 ns each.
  PrincipalPtr FindToken(const TokenHash& hash) const;
  // The first one that has any of the names; null for none.
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
