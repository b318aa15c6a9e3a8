#include "net/peer_key.h"

#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace simile::net {

PeerKey PeerKey::Of(const sockaddr_storage& address, unsigned ipv6_bits) {
  assert(ipv6_bits <= kIpv6Bits);
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
      const unsigned whole_bytes = ipv6_bits / 8;
      const unsigned more_bits = ipv6_bits % 8;
      set(6, v6.s6_addr, whole_bytes);
      if (more_bits > 0) {
        key.bytes_[1 + whole_bytes] =
            static_cast<std::uint8_t>(v6.s6_addr[whole_bytes] & (0xFF00U >> more_bits));
      }
    }
  } else if (address.ss_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    set(4, reinterpret_cast<const std::uint8_t*>(&v4), 4);
  }
  return key;
}

}  // namespace simile::net
