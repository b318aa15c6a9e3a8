#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "data/file_descriptor.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/connection_table.h"
#include "service/listen_socket.h"

namespace simile::service {

// Our own accept loop, on its own thread, in front of gRPC, which has no limit on connections: it
// hands over at most connections_max connections, at most per_peer_max of one address, and resets
// the others at once. Running out of file descriptors closes the newcomer and nothing else: a spare
// descriptor is given up to accept and reset it, so that the backlog never spins the loop.
class Acceptor {
 public:
  struct Options {
    std::size_t connections_max = 1'024;
    std::size_t per_peer_max = 64;
  };
  // Takes over a connected, non-blocking socket.
  using HandOver = std::function<void(int fd)>;

  // metrics and log are borrowed for the acceptor's life.
  Acceptor(ListenSocket socket, Options options, HandOver hand_over, observe::Metrics& metrics,
           const observe::Logger& log);
  ~Acceptor();  // stops as Stop()
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Begins to accept. Called once.
  void Start();
  // Connections open now. Cost: a system call each.
  std::size_t CountOpen();
  // Closes the listening socket; connections handed over stay. Idempotent.
  void Stop();

 private:
  // What one accept led to, and so what the loop does next.
  enum class Step : std::uint8_t { kAgain, kWait, kBackOff };

  void Loop();
  Step AcceptOne();
  void Admit(data::FileDescriptor connection, const sockaddr_storage& peer);
  Step ShedForLackOfDescriptors();

  ListenSocket socket_;
  const HandOver hand_over_;
  observe::Metrics& metrics_;
  const observe::Logger& log_;
  data::FileDescriptor stop_event_;
  data::FileDescriptor spare_;
  std::mutex table_mutex_;  // guards table_
  ConnectionTable table_;
  bool was_shedding_ = false;  // the loop's own: one log line a spell, not one a connection
  std::thread thread_;
};

}  // namespace simile::service
