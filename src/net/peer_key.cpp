#include "net/peer_key.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>

namespace simile::net {

PeerKey PeerKey::Of(const sockaddr_storage& address) {
  PeerKey key;
  const auto set = [&key](std::uint8_t family, const std::uint8_t* bytes, std::size_t count) {
    key.bytes_[0] = family;
    std::copy_n(bytes, count, key.bytes_.begin() + 1);
  };
  if (address.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      set(4, v6.s6_addr + 12, 4);
    } else {
      set(6, v6.s6_addr, 8);
    }
  } else if (address.ss_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    set(4, reinterpret_cast<const std::uint8_t*>(&v4), 4);
  }
  return key;
}

}  // namespace simile::net
