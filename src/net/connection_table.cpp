#include "net/connection_table.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>

namespace simile::net {
namespace {

// The identity of the socket behind a descriptor; 0 when there is none.
std::uint64_t SocketIdentity(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

}  // namespace

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

Admission ConnectionTable::Admit(int fd, const PeerKey& peer) {
  // The kernel reuses a descriptor only after it was closed, so a former entry is stale.
  const auto former = open_.find(fd);
  if (former != open_.end()) Forget(former);
  if (open_.size() >= connections_max_ || PeerCount(peer) >= per_peer_max_) ForgetClosed();
  if (open_.size() >= connections_max_) return Admission::kFull;
  if (PeerCount(peer) >= per_peer_max_) return Admission::kPeerFull;
  open_[fd] = {SocketIdentity(fd), peer};
  ++by_peer_[peer];
  return Admission::kAdmitted;
}

std::size_t ConnectionTable::CountOpen() {
  ForgetClosed();
  return open_.size();
}

void ConnectionTable::ForgetClosed() {
  for (auto connection = open_.begin(); connection != open_.end();) {
    const auto next = std::next(connection);
    if (SocketIdentity(connection->first) != connection->second.socket_identity) {
      Forget(connection);
    }
    connection = next;
  }
}

void ConnectionTable::Forget(std::map<int, Connection>::iterator connection) {
  const auto count = by_peer_.find(connection->second.peer);
  if (--count->second == 0) by_peer_.erase(count);
  open_.erase(connection);
}

std::size_t ConnectionTable::PeerCount(const PeerKey& peer) const {
  const auto count = by_peer_.find(peer);
  return count == by_peer_.end() ? 0 : count->second;
}

}  // namespace simile::net
