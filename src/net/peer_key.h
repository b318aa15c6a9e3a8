#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

namespace simile::net {

// The origin of a connection, for limits: an IPv4 address, or the network of an IPv6 address, since
// one host commonly owns a whole /64. An IPv4 address mapped into IPv6 equals the plain one.
class PeerKey {
 public:
  static constexpr unsigned kIpv6Bits = 128;  // of an address

  //   ipv6_bits  Limits::ipv6_peer_bits. REQUIRES: at most kIpv6Bits.
  static PeerKey Of(const sockaddr_storage& address, unsigned ipv6_bits);
  friend auto operator<=>(const PeerKey&, const PeerKey&) = default;
  // Equal for equal keys; of this object.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::array<std::uint8_t, 1 + kIpv6Bits / 8> bytes_{};  // family, then the bytes of the address
};

}  // namespace simile::net
