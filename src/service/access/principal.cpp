#include "service/access/principal.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace simile::service
