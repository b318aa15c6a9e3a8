#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <absl/status/statusor.h>

#include "net/acceptor.h"
#include "net/call_gate.h"
#include "net/listen_socket.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/limits.h"

// gRPC's own headers are heavy.
namespace grpc {
class Server;
class Service;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace simile::net {

// The name under which grpc.health.v1.Health says whether the process answers at all: SERVING from
// Accept to the end, also while collections load and while the server drains. Not for routing
// calls.
inline constexpr char kLivenessName[] = "liveness";

// What the health of the server as a whole says, and why.
enum class ServingState : std::uint8_t { kStarting, kServing, kDraining };

// The gRPC server: the given services, grpc.health.v1.Health and, if enabled, reflection, behind an
// Acceptor. Starts NOT_SERVING. Owned by wiring; all methods may be called from any thread.
class Server {
 public:
  struct Options {
    std::string listen = "127.0.0.1";
    std::uint16_t port = 0;  // 0 chooses a free one
    bool reflection = false;
  };

  // Listens, but accepts no connection before Accept. The services and all references are borrowed
  // for the server's life.
  //   gate  every call of the services enters it; Drain closes it and waits for it
  // Errors: those of Listen; kInternal when gRPC does not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, const Limits& limits,
                                                       std::span<grpc::Service* const> services,
                                                       CallGate& gate, observe::Metrics& metrics,
                                                       const observe::Logger& log);
  ~Server();  // stops at once: cancels the calls in flight and waits for them

  // Starts to accept connections. Called once.
  void Accept() { acceptor_.Start(); }

  std::uint16_t port() const { return port_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:50051"
  std::size_t CountConnections() { return acceptor_.CountOpen(); }

  // Health of the server as a whole, and of one collection. NOT_SERVING after AnnounceDrain.
  void SetServing(bool serving);
  void SetCollectionServing(const std::string& collection, bool serving);
  ServingState state() const;

  // Health, except of liveness, says NOT_SERVING from now on; calls are still taken. Returns
  // whether any of it said SERVING. Idempotent.
  bool AnnounceDrain();

  // Stops gracefully: AnnounceDrain; no connection is accepted, new calls get UNAVAILABLE, and
  // calls in flight finish. False when some are still running after `timeout`. Idempotent.
  bool Drain(std::chrono::milliseconds timeout);

 private:
  Server(ListenSocket socket, const Limits& limits, CallGate& gate, observe::Metrics& metrics,
         const observe::Logger& log);
  absl::Status BuildServer(bool reflection, const Limits& limits,
                           std::span<grpc::Service* const> services);
  void HandOver(int fd);

  CallGate& gate_;
  const std::uint16_t port_;
  const std::string address_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex health_mutex_;         // guards the next two
  std::map<std::string, bool> is_serving_;  // by name of the health service, without liveness
  bool draining_ = false;
  Acceptor acceptor_;  // last: its thread uses the members above
};

}  // namespace simile::net
