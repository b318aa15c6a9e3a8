#include "service/caller_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

#include "net/connection_table.h"

namespace simile::service {
namespace {

constexpr std::string_view kIpv4 = "ipv4:";
constexpr std::string_view kIpv6 = "ipv6:";

bool ReadAddress(int family, std::string_view text, void* address) {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size()) return false;
  std::ranges::copy(text, terminated.begin());
  return inet_pton(family, terminated.data(), address) == 1;
}

// Reads the address of a peer, without its port, into `address`. False when it has none.
bool ReadPeer(std::string_view peer, sockaddr_storage& address) {
  if (peer.starts_with(kIpv4)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    return ReadAddress(AF_INET, peer.substr(kIpv4.size()), &v4.sin_addr);
  }
  if (!peer.starts_with(kIpv6)) return false;
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  // gRPC writes the brackets as %5B and %5D. Behind the address there may be an interface: %25eth0.
  std::string_view text = peer.substr(kIpv6.size());
  text.remove_prefix(text.starts_with("%5B") ? 3 : std::min<std::size_t>(1, text.size()));
  return ReadAddress(AF_INET6, text.substr(0, text.find_first_of("%]")), &v6.sin6_addr);
}

}  // namespace

CallerKey CallerKeyOf(std::string_view peer, unsigned ipv6_bits) {
  const std::string_view without_port = peer.substr(0, peer.rfind(':'));
  const std::hash<std::string_view> hash;
  sockaddr_storage address{};
  if (!ReadPeer(without_port, address)) return static_cast<CallerKey>(hash(without_port));
  return static_cast<CallerKey>(hash(net::PeerKey::Of(address, ipv6_bits).bytes()));
}

CallerKey CallerKeyOfName(std::string_view name) {
  return static_cast<CallerKey>(std::hash<std::string_view>{}(name));
}

}  // namespace simile::service
