#include "base/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace simile::base {

bool IsLoopback(const sockaddr& address) {
  constexpr std::uint8_t kLoopbackNetwork = 127;
  if (address.sa_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return ntohl(v4.s_addr) >> 24 == kLoopbackNetwork;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == kLoopbackNetwork);
}

bool IsLoopback(const std::string& host) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return IsLoopback(reinterpret_cast<const sockaddr&>(v4));
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    return IsLoopback(reinterpret_cast<const sockaddr&>(v6));
  }
  return host == "localhost";
}

}  // namespace simile::base
