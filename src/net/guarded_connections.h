#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include "net/frame_guard.h"
#include "net/peer_key.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::net {

class GuardedConnection;

// The connections of a server that a FrameGuard each watches. gRPC reads from and writes to its
// sockets itself; the functions of the C library and of OpenSSL by which it does so are the
// program's (library_sockets.cpp), and show the guard what passes. Owned by the server; all methods
// may be called from any thread.
class GuardedConnections {
 public:
  // What is borrowed.
  struct Parts {
    const Clock& clock;
    observe::Metrics& metrics;
    const observe::Logger& log;
  };
  GuardedConnections(const FrameGuard::Options& options, std::uint64_t unfinished_bytes_max,
                     const Parts& parts);
  ~GuardedConnections();  // from now on none of them is guarded
  GuardedConnections(const GuardedConnections&) = delete;
  GuardedConnections& operator=(const GuardedConnections&) = delete;

  // Guards the socket from here until it is closed, and TLS that `take_over` sets up on it.
  //   take_over  gives the socket to gRPC
  // Errors: kOutOfMemory; then the socket is not guarded, nor given to gRPC.
  absl::Status HandOver(int fd, const PeerKey& peer, absl::FunctionRef<void()> take_over);

  class State;

 private:
  const std::shared_ptr<State> state_;
};

// The first of the functions by which gRPC reads and writes that its library would not find in the
// program; empty when it finds all, so that connections can be guarded.
std::string_view FunctionNotReplaced();

// What library_sockets.cpp calls.
namespace guarded_sockets {

// Bytes were received from the descriptor, or sent to it. False when the connection is cut.
bool Received(int fd, const iovec* pieces, std::size_t bytes);
void Sent(int fd, const iovec* pieces, std::size_t bytes);
// The descriptor is about to be closed.
void Closing(int fd);

// The connection that this thread is handing over, for the TLS session that is made meanwhile: from
// now on what the socket carries is not looked at. Null when there is none.
std::shared_ptr<GuardedConnection> TakeForTls();
// Bytes were decrypted by the session, or encrypted by it. False when the connection is cut.
bool ReceivedOverTls(GuardedConnection& connection, void* bytes, std::size_t count);
bool IsCut(const GuardedConnection& connection);
void SentOverTls(GuardedConnection& connection, const void* bytes, std::size_t count);

}  // namespace guarded_sockets
}  // namespace simile::net
