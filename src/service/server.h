#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "observe/log.h"
#include "observe/metrics.h"
#include "service/rpc_services.h"
#include "simile/limits.h"

namespace simile::service {

// The gRPC server: our services, grpc.health.v1.Health and, when asked, reflection, behind our own
// acceptor. Starts NOT_SERVING. Owned by wiring; all methods may be called from any thread.
class Server {
 public:
  struct Options {
    std::string listen = "127.0.0.1";
    std::uint16_t port = 0;  // 0: any free one
    bool reflection = false;
  };

  // Takes the address, but answers nobody before Accept. services, metrics and log are borrowed for
  // the server's life.
  // Errors: those of Listen; kInternal when gRPC will not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, const Limits& limits,
                                                       RpcServices& services,
                                                       observe::Metrics& metrics,
                                                       const observe::Logger& log);
  ~Server();  // stops at once: calls in flight are cancelled, and waited for

  // Begins to answer whoever connects. Called once.
  void Accept();

  std::uint16_t port() const;
  std::string address() const;  // "127.0.0.1:50051"
  std::size_t CountConnections();

  // Health of the server as a whole, and of one collection.
  void SetServing(bool serving);
  void SetCollectionServing(const std::string& collection, bool serving);

  // Stops politely: health says NOT_SERVING for good, no connection is accepted, new calls get
  // UNAVAILABLE, and calls in flight finish. False when some had not after `patience`; they are
  // still running then. Idempotent.
  bool Drain(std::chrono::milliseconds patience);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::service
