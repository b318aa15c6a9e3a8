#include "net/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include "net/io_thread.h"
#include "net/is_guarded.h"
#include "net/queued_service.h"
#include "net/tls.h"

namespace simile::net {
namespace {

// Descriptors that connections must not use: for the process's own files, gRPC's polling, the
// metrics endpoint and a collection being loaded.
constexpr std::size_t kReservedDescriptors = 32;

// How long a server that stops refuses calls itself. gRPC's shutdown cancels what arrives after it,
// and clients do not retry that: a busy client first gets a refusal, which it retries elsewhere.
constexpr std::chrono::milliseconds kRefusing{50};

// How long a server whose calls have ended waits until its clients have closed their connections.
constexpr std::chrono::milliseconds kCloseWaitMax{250};

// The end of the shutdown, in whose queue nobody looks for it.
class ShutdownTag final : public grpc::internal::CompletionQueueTag {
 public:
  bool FinalizeResult(void** /*tag*/, bool* /*status*/) override { return false; }
};

// Linking the reflection library installs it into every server of the process; this removes it
// unless it is wanted.
class ReflectionChoice final : public grpc::ServerBuilderOption {
 public:
  explicit ReflectionChoice(bool wanted) : wanted_(wanted) {}
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
    if (wanted_) {
      plugins->push_back(std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>());
    }
  }

 private:
  const bool wanted_;
};

int Milliseconds(std::chrono::milliseconds duration) { return static_cast<int>(duration.count()); }

void ApplyLimits(const Limits& limits, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.receive_bytes_max));
  builder.SetMaxSendMessageSize(static_cast<int>(limits.reply_bytes_max));
  const auto set = [&builder](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  };
  set(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits.metadata_bytes_max));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams_per_connection_max));
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(limits.handshake_timeout));
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(limits.keepalive_time));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(limits.keepalive_timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(limits.ping_interval_min));
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(limits.connection_idle_max));
  if (limits.connection_age_max.count() > 0) {
    set(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(limits.connection_age_max));
    set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(limits.connection_age_grace));
  }
  // gRPC unpacks a compressed request before it looks at the limit: 2 MB of zeros become 2 GiB.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.SetResourceQuota(grpc::ResourceQuota("simile").Resize(limits.network_bytes_max));
}

// The configured maximum, or what this process's descriptors allow.
std::size_t ConnectionsMax(const Limits& limits, const observe::Logger& log) {
  const std::size_t wanted = limits.connections_max;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return wanted;
  const std::size_t available = descriptors.rlim_cur > 2 * kReservedDescriptors
                                    ? descriptors.rlim_cur - kReservedDescriptors
                                    : descriptors.rlim_cur / 2;
  if (available < wanted) {
    log.Warn("fewer connections than configured: file descriptors are limited (ulimit -n)",
             {{"connections_max", available}, {"configured", wanted}});
  }
  return std::min(wanted, available);
}

std::unique_ptr<GuardedConnections> MakeGuard(const Limits& limits, const Server::Parts& parts) {
  const std::string_view missed = FunctionNotReplaced();
  if (!missed.empty()) {
    parts.log.Warn(
        "connections are not guarded against floods of HTTP/2 frames: gRPC does not call this "
        "program's function; put a proxy in front of the server",
        {{"function", missed}});
    return nullptr;
  }
  return std::make_unique<GuardedConnections>(
      FrameGuard::Options{limits.receive_bytes_max, limits.metadata_bytes_max,
                          limits.streams_per_connection_max},
      limits.unfinished_bytes_per_peer_max,
      GuardedConnections::Parts{parts.clock, parts.metrics, parts.log});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Options options, const Limits& limits,
                                                      const Parts& parts) {
  auto socket = Listen(options.listen, options.port);
  if (!socket.ok()) return socket.status();
  auto guarded =
      IsGuarded(options.frame_guard, socket->is_loopback) ? MakeGuard(limits, parts) : nullptr;
  std::unique_ptr<Server> server(new Server(*std::move(socket), std::move(guarded), limits, parts));
  const absl::Status built = server->BuildServer(std::move(options), limits, parts);
  if (!built.ok()) return built;
  return server;
}

Server::Server(ListenSocket socket, std::unique_ptr<GuardedConnections> guarded,
               const Limits& limits, const Parts& parts)
    : port_(socket.port),
      address_(socket.address),
      guarded_(std::move(guarded)),
      acceptor_(
          std::move(socket),
          {ConnectionsMax(limits, parts.log), limits.connections_per_peer_max,
           limits.ipv6_peer_bits, limits.keepalive_timeout},
          [this](int fd, const PeerKey& peer) { HandOver(fd, peer); }, parts.clock, parts.metrics,
          parts.log) {}

Server::~Server() {
  if (server_ == nullptr) return;
  Drain(std::chrono::milliseconds(0));
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  void* tag = nullptr;
  bool ok = false;
  while (shutdown_queue_->Next(&tag, &ok)) {
  }
  // All calls are cancelled by now, but their last events may be on the way, and a call that begins
  // an operation after its queue was shut down ends the process.
  constexpr std::chrono::seconds kLastEventsMax{10};
  io_->AwaitNoCalls(kLastEventsMax);
  io_.reset();
}

absl::Status Server::BuildServer(Options options, const Limits& limits, const Parts& parts) {
  grpc::ServerBuilder builder;
  ApplyLimits(limits, builder);
  builder.SetOption(std::make_unique<ReflectionChoice>(options.reflection));
  for (QueuedService* const service : parts.services) {
    builder.RegisterService(&service->grpc_service());
  }
  io_ = std::make_unique<IoThread>(builder.AddCompletionQueue(), std::move(options.before_wait),
                                   parts.clock, parts.metrics);
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      options.tls == nullptr ? grpc::InsecureServerCredentials() : options.tls->Credentials());
  shutdown_queue_ = std::make_unique<grpc::CompletionQueue>();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("the gRPC server did not start");
  for (QueuedService* const service : parts.services) service->TakeCalls(*io_);
  io_->Start();
  return absl::OkStatus();
}

bool Server::Drain(std::chrono::milliseconds timeout) {
  acceptor_.Stop();
  if (!shutdown_begun_) {
    io_->StopCalls();
    std::this_thread::sleep_for(std::min(timeout, kRefusing));
    BeginShutdown();
  }
  const bool finished = io_->AwaitNoCalls(timeout);
  if (!finished) {
    grpc_server_cancel_all_calls(server_->c_server());
    return false;
  }
  AwaitConnectionsClosed();
  return true;
}

void Server::BeginShutdown() {
  // As grpc::Server::Shutdown begins, which would then wait until the last connection is closed:
  // a client that has been stopped keeps its connection.
  static ShutdownTag tag;
  shutdown_begun_ = true;
  grpc_server_shutdown_and_notify(server_->c_server(), shutdown_queue_->cq(), &tag);
  shutdown_queue_->Shutdown();
}

void Server::AwaitConnectionsClosed() {
  void* tag = nullptr;
  bool ok = false;
  shutdown_queue_->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kCloseWaitMax);
}

void Server::HandOver(int fd, const PeerKey& peer) {
  const auto take_over = [this, fd] {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = fd;
    connections_->HandleNewConnection(&connection);
  };
  if (guarded_ == nullptr) return take_over();
  if (!guarded_->HandOver(fd, peer, take_over).ok()) base::FileDescriptor(fd).Close();
}

}  // namespace simile::net
