#include "service/caller_key.h"

#include <functional>

namespace simile::service {

CallerKey CallerKeyOf(const net::PeerKey& peer) {
  return static_cast<CallerKey>(std::hash<std::string_view>{}(peer.bytes()));
}

CallerKey CallerKeyOfName(std::string_view name) {
  return static_cast<CallerKey>(std::hash<std::string_view>{}(name));
}

}  // namespace simile::service
