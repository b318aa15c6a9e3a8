#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

namespace simile::net {

// The origin of a connection, for limits: an IPv4 address, or the /64 network of an IPv6 address,
// since one host commonly owns all of it. An IPv4 address mapped into IPv6 equals the plain one.
class PeerKey {
 public:
  static PeerKey Of(const sockaddr_storage& address);
  friend auto operator<=>(const PeerKey&, const PeerKey&) = default;

 private:
  std::array<std::uint8_t, 9> bytes_{};  // family, then up to 8 bytes of address
};

enum class Admission : std::uint8_t { kAdmitted, kFull, kPeerFull };

// Counts the open connections, in all and by peer. gRPC owns the descriptors and reports no close,
// so each entry keeps the identity of its socket (the inode number, which the kernel does not soon
// reuse): a connection is open while fstat still finds that socket behind the descriptor. That
// costs one system call for each connection, made only when a limit seems reached and for
// CountOpen. Not thread-safe.
class ConnectionTable {
 public:
  ConnectionTable(std::size_t connections_max, std::size_t per_peer_max)
      : connections_max_(connections_max), per_peer_max_(per_peer_max) {}

  // Counts an accepted connection, unless that would exceed a limit.
  Admission Admit(int fd, const PeerKey& peer);
  // Connections open now.
  std::size_t CountOpen();

 private:
  struct Connection {
    std::uint64_t socket_identity = 0;
    PeerKey peer;
  };
  void ForgetClosed();
  void Forget(std::map<int, Connection>::iterator connection);
  std::size_t PeerCount(const PeerKey& peer) const;

  const std::size_t connections_max_;
  const std::size_t per_peer_max_;
  std::map<int, Connection> open_;  // by descriptor
  std::map<PeerKey, std::size_t> by_peer_;
};

}  // namespace simile::net
