#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/file_descriptor.h"
#include "net/listen_socket.h"
#include "net/peers.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::net {

// Accepts connections on a thread of its own. Hands over the connections that the table admits, and
// resets all other connections at once. When file descriptors run out, it closes a spare descriptor
// to accept and reset the new connection. Otherwise the connection would stay in the backlog and
// the loop would spin.
class Acceptor {
 public:
  struct Options {
    unsigned ipv6_peer_bits = 64;  // Limits::ipv6_peer_bits
    // A peer that takes none of the bytes sent to it for this long is disconnected.
    std::chrono::milliseconds untaken_max{10'000};
  };
  using HandOver = std::function<void(AdmittedSocket socket)>;  // may throw bad_alloc

  // table, clock, metrics and log are borrowed for the acceptor's life.
  Acceptor(ListenSocket socket, Options options, ConnectionTable& table, HandOver hand_over,
           const Clock& clock, observe::Metrics& metrics, const observe::Logger& log);
  ~Acceptor();  // stops as Stop()
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Starts the accept loop. Called once.
  void Start();
  // Closes the listening socket; connections handed over stay. Idempotent.
  void Stop();

 private:
  // What the loop does after one accept.
  enum class Step : std::uint8_t { kAgain, kWait, kBackOff };

  void Loop();
  Step AcceptOne();
  void Admit(base::FileDescriptor connection, const sockaddr_storage& peer);
  // Tells the peer why and closes the connection. Logs at most one refusal in kRefusalLogInterval.
  void Refuse(base::FileDescriptor connection, const sockaddr_storage& peer, Admission admission);
  Step ShedForLackOfDescriptors();

  ListenSocket socket_;
  const Options options_;
  ConnectionTable& table_;
  const HandOver hand_over_;
  const Clock& clock_;
  observe::Metrics& metrics_;
  const observe::Logger& log_;
  base::FileDescriptor stop_event_;
  base::FileDescriptor spare_;
  // Of the loop's thread.
  bool was_shedding_ = false;  // logs once until a connection is accepted again
  Clock::TimePoint next_refusal_log_;
  std::uint64_t refusals_not_logged_ = 0;
  std::thread thread_;
};

}  // namespace simile::net
