#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <absl/status/statusor.h>

#include "net/acceptor.h"
#include "net/connection_guards.h"
#include "net/http2_connection.h"
#include "net/listen_socket.h"
#include "net/peers.h"
#include "net/rpc_call.h"
#include "net/tls.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::net {

// The gRPC server: an Acceptor, and loops that carry its connections. A connection stays with its
// loop. Owned by wiring. Any thread may call its methods, Drain one at a time.
class Server {
 public:
  struct Options {
    std::string listen = "127.0.0.1";
    std::uint16_t port = 0;  // 0 chooses a free one
    std::size_t io_threads = 1;
    std::shared_ptr<Tls> tls;  // null: connections are not encrypted
    // See EventLoop::BeforeWait; called by each loop.
    EventLoop::BeforeWait before_wait;
  };
  // What is borrowed for the server's life.
  struct Parts {
    std::span<RpcMethod* const> methods;
    const Clock& clock;
    observe::Metrics& metrics;
    const observe::Logger& log;
  };

  // Listens, but accepts no connection before Accept.
  // Errors: those of Listen; kUnavailable without a descriptor or a thread.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options, const Limits& limits,
                                                       const Parts& parts);
  ~Server();  // stops at once: cuts the calls in flight and waits for them

  // Starts to accept connections. Called once.
  void Accept() { acceptor_.Start(); }

  std::uint16_t port() const { return port_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:50051"
  std::size_t CountConnections() const { return table_.CountOpen(); }

  // Stops gracefully: no connection is accepted, clients get GOAWAY, and calls in flight finish.
  // Cuts the calls that still run after `timeout`. False when it cut any call. Idempotent.
  bool Drain(std::chrono::milliseconds timeout);

 private:
  class LoopGroup;

  Server(ListenSocket socket, Options options, const Limits& limits, const Parts& parts);
  void HandOver(AdmittedSocket socket);
  bool AwaitNoCalls(Clock::TimePoint end);
  void AwaitNoConnections(std::chrono::milliseconds most) const;

  const std::uint16_t port_;
  const std::string address_;
  const Options options_;
  const Clock& clock_;
  std::unordered_map<std::string_view, RpcMethod*> methods_;  // by path
  PeerBudgets budgets_;
  CutReports cut_reports_;
  std::atomic<bool> stops_ = false;
  ConnectionTable table_;
  std::vector<std::unique_ptr<LoopGroup>> groups_;
  Acceptor acceptor_;  // last: its thread uses the members above
};

}  // namespace simile::net
