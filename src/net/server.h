#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <absl/status/statusor.h>

#include "net/acceptor.h"
#include "net/frame_guard_when.h"
#include "net/guarded_connections.h"
#include "net/listen_socket.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"
#include "simile/limits.h"

// gRPC's own headers are heavy.
namespace grpc {
class CompletionQueue;
class Server;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace simile::net {

class IoThread;
class Tls;
class QueuedService;

// The gRPC server: the given services and, if enabled, reflection, behind an Acceptor. All calls
// come out of one completion queue, whose thread carries the I/O. Owned by wiring; all methods may
// be called from any thread.
class Server {
 public:
  struct Options {
    std::string listen = "127.0.0.1";
    std::uint16_t port = 0;  // 0 chooses a free one
    bool reflection = false;
    std::shared_ptr<Tls> tls;  // null: connections are not encrypted
    // See IoThread::BeforeWait.
    std::function<bool()> before_wait;
    FrameGuardWhen frame_guard = FrameGuardWhen::kAuto;
  };
  // What is borrowed for the server's life.
  struct Parts {
    std::span<QueuedService* const> services;
    const Clock& clock;
    observe::Metrics& metrics;
    const observe::Logger& log;
  };

  // Listens, but accepts no connection before Accept.
  // Errors: those of Listen; kInternal when gRPC does not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options, const Limits& limits,
                                                       const Parts& parts);
  ~Server();  // stops at once: cuts the calls in flight and waits for them

  // Starts to accept connections. Called once.
  void Accept() { acceptor_.Start(); }

  std::uint16_t port() const { return port_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:50051"
  std::size_t CountConnections() { return acceptor_.CountOpen(); }

  // Stops gracefully: no connection is accepted, clients get GOAWAY, no new call is
  // taken, and calls in flight finish; those that are still running after `timeout` are cut. False
  // when there were any. Idempotent.
  bool Drain(std::chrono::milliseconds timeout);

 private:
  Server(ListenSocket socket, std::unique_ptr<GuardedConnections> guarded, const Limits& limits,
         const Parts& parts);
  absl::Status BuildServer(Options options, const Limits& limits, const Parts& parts);
  void HandOver(int fd, const PeerKey& peer);
  void BeginShutdown();
  // After GOAWAY: waits a moment until the connections are closed, so that no client sends a call
  // into one that the end of the process breaks.
  void AwaitConnectionsClosed();

  const std::uint16_t port_;
  const std::string address_;
  const std::unique_ptr<GuardedConnections> guarded_;  // null: connections are not guarded
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::CompletionQueue>
      shutdown_queue_;  // made at the start: a stop takes no memory
  bool shutdown_begun_ = false;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<IoThread> io_;
  Acceptor acceptor_;  // last: its thread uses the members above
};

}  // namespace simile::net
