#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

namespace simile::net {

// The origin of a connection, for limits: an IPv4 address, or the /64 network of an IPv6 address,
// since one host commonly owns all of it. An IPv4 address mapped into IPv6 equals the plain one.
class PeerKey {
 public:
  static PeerKey Of(const sockaddr_storage& address);
  friend auto operator<=>(const PeerKey&, const PeerKey&) = default;
  // Equal for equal keys; of this object.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::array<std::uint8_t, 9> bytes_{};  // family, then up to 8 bytes of address
};

}  // namespace simile::net
