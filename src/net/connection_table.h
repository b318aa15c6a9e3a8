#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string_view>

#include "base/file_descriptor.h"
#include "net/peer_key.h"
#include "simile/clock.h"

namespace simile::net {

enum class Admission : std::uint8_t { kAdmitted, kFull, kPeerFull };

// Counts the open connections, in all and by peer. gRPC owns the descriptors and reports no close,
// so each entry keeps the identity of its socket (the inode number, which the kernel does not soon
// reuse): a connection is open while fstat still finds that socket behind the descriptor. The
// kernel tells which peers have closed theirs, and those are looked at first. As gRPC may also
// close a connection, which nothing tells, each refusal looks at a few others, and one a second at
// all. So an attempt costs a few system calls however many connections there are. Not thread-safe.
class ConnectionTable {
 public:
  // clock  borrowed
  ConnectionTable(std::size_t connections_max, std::size_t per_peer_max, const Clock& clock);

  // Counts an accepted connection, unless that would exceed a limit. May throw bad_alloc; then it
  // is not counted.
  Admission Admit(int fd, const PeerKey& peer);
  // Readable while LearnOfClosedPeers has something to learn. That should be soon, since the kernel
  // forgets it when gRPC closes the connection too.
  int peer_closes_fd() const { return peer_closes_.get(); }
  void LearnOfClosedPeers();
  // Connections open now, but for those that gRPC closed within the last second.
  std::size_t CountOpen();
  // How often a descriptor was looked at, since the start.
  std::uint64_t looks() const { return looks_; }

 private:
  struct Connection {
    std::uint64_t socket_identity = 0;
    PeerKey peer;
  };
  using Connections = std::map<int, Connection>;  // by descriptor
  // A connection whose peer has closed it; gRPC will.
  struct Closing {
    int fd = -1;
    std::uint64_t socket_identity = 0;
  };

  bool IsFull(const PeerKey& peer) const;
  std::size_t PeerCount(const PeerKey& peer) const;
  // Forgets those whose peers have closed them, and gRPC then too.
  void ForgetClosed();
  // Forgets those of the others that are found to have closed.
  void LookAtOthers();
  void LookAtSome();
  void LookAtAll();
  // Forgets the connection unless it is open. Returns the next one.
  Connections::iterator Look(Connections::iterator connection);
  void Forget(Connections::iterator connection);

  const std::size_t connections_max_;
  const std::size_t per_peer_max_;
  const Clock& clock_;
  // Of all open connections: reports each once when its peer closes it. A descriptor leaves it by
  // being closed.
  const base::FileDescriptor peer_closes_;
  Connections open_;
  std::map<PeerKey, std::size_t> by_peer_;
  std::deque<Closing> closing_;
  int next_look_ = 0;  // the descriptor from which LookAtSome goes on
  Clock::TimePoint next_look_at_all_;
  std::uint64_t looks_ = 0;
};

}  // namespace simile::net
