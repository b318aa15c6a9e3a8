#include "service/access/access_policy.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace simile::service {
namespace {

constexpr std::array<std::string_view, 4> kRoleNames = {"none", "read", "write", "admin"};

}  // namespace

std::string_view NameOf(Role role) { return kRoleNames.at(static_cast<std::size_t>(role)); }

std::optional<Role> RoleNamed(std::string_view name) {
  for (const Role role : {Role::kRead, Role::kWrite, Role::kAdmin}) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

bool Principal::MaySee(std::string_view collection) const {
  return collections.empty() || std::ranges::find(collections, collection) != collections.end();
}

TokenHash HashToken(std::string_view token) {
  TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

bool EqualHashes(const TokenHash& a, const TokenHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

AccessPolicy::AccessPolicy(std::vector<Principal> principals) {
  for (Principal& each : principals) {
    for (const TokenHash& hash : each.token_hashes) hashes_.push_back({hash, principals_.size()});
    uses_certificates_ = uses_certificates_ || !each.certificate_names.empty();
    principals_.push_back(std::make_shared<const Principal>(std::move(each)));
  }
}

PrincipalPtr AccessPolicy::FindToken(const TokenHash& hash) const {
  std::size_t found = principals_.size();
  for (const Hash& known : hashes_) {
    // Constant time: no early end, and a mask instead of a branch.
    const std::size_t mask =
        std::size_t{0} - static_cast<std::size_t>(EqualHashes(hash, known.hash));
    found = (found & ~mask) | (known.principal & mask);
  }
  return found == principals_.size() ? nullptr : principals_[found];
}

PrincipalPtr AccessPolicy::FindCertificate(std::span<const std::string> names) const {
  for (const PrincipalPtr& principal : principals_) {
    for (const std::string& name : principal->certificate_names) {
      if (std::ranges::find(names, name) != names.end()) return principal;
    }
  }
  return nullptr;
}

}  // namespace simile::service
