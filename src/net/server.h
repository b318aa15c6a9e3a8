#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <absl/status/statusor.h>

#include "net/call_gate.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/limits.h"

namespace grpc {
class Service;
}

namespace simile::net {

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
  void Accept();

  std::uint16_t port() const;
  std::string address() const;  // "127.0.0.1:50051"
  std::size_t CountConnections();

  // Health of the server as a whole, and of one collection.
  void SetServing(bool serving);
  void SetCollectionServing(const std::string& collection, bool serving);

  // Stops gracefully: health says NOT_SERVING from now on, no connection is accepted, new calls get
  // UNAVAILABLE, and calls in flight finish. False when some are still running after `timeout`.
  // Idempotent.
  bool Drain(std::chrono::milliseconds timeout);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::net
