#include "net/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

namespace simile::net {
namespace {

// Descriptors that connections must not use: for the process's own files, gRPC's polling, the
// metrics endpoint and a collection being loaded.
constexpr std::size_t kReservedDescriptors = 32;

// How long streaming health watches may take to receive the last status before they are cancelled.
constexpr std::chrono::milliseconds kGoodbye{100};

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

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, const Limits& limits,
                                                      std::span<grpc::Service* const> services,
                                                      CallGate& gate, observe::Metrics& metrics,
                                                      const observe::Logger& log) {
  auto socket = Listen(options.listen, options.port);
  if (!socket.ok()) return socket.status();
  std::unique_ptr<Server> server(new Server(*std::move(socket), limits, gate, metrics, log));
  const absl::Status built = server->BuildServer(options.reflection, limits, services);
  if (!built.ok()) return built;
  return server;
}

Server::Server(ListenSocket socket, const Limits& limits, CallGate& gate, observe::Metrics& metrics,
               const observe::Logger& log)
    : gate_(gate),
      port_(socket.port),
      address_(socket.address),
      acceptor_(
          std::move(socket), {ConnectionsMax(limits, log), limits.connections_per_peer_max},
          [this](int fd) { HandOver(fd); }, metrics, log) {}

Server::~Server() {
  if (server_ == nullptr) return;
  Drain(std::chrono::milliseconds(0));
  server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
  server_->Wait();
}

absl::Status Server::BuildServer(bool reflection, const Limits& limits,
                                 std::span<grpc::Service* const> services) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ApplyLimits(limits, builder);
  builder.SetOption(std::make_unique<ReflectionChoice>(reflection));
  for (grpc::Service* const service : services) builder.RegisterService(service);
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("the gRPC server did not start");
  // Before the first health check.
  SetServing(false);
  server_->GetHealthCheckService()->SetServingStatus(kLivenessName, true);
  return absl::OkStatus();
}

void Server::SetServing(bool serving) { SetCollectionServing("", serving); }

void Server::SetCollectionServing(const std::string& collection, bool serving) {
  const std::lock_guard lock(health_mutex_);
  const bool now = serving && !draining_;
  is_serving_[collection] = now;
  server_->GetHealthCheckService()->SetServingStatus(collection, now);
}

ServingState Server::state() const {
  const std::lock_guard lock(health_mutex_);
  if (draining_) return ServingState::kDraining;
  return is_serving_.at("") ? ServingState::kServing : ServingState::kStarting;
}

bool Server::AnnounceDrain() {
  const std::lock_guard lock(health_mutex_);
  draining_ = true;
  bool was_serving = false;
  for (auto& [name, serving] : is_serving_) {
    was_serving |= std::exchange(serving, false);
    server_->GetHealthCheckService()->SetServingStatus(name, false);
  }
  return was_serving;
}

bool Server::Drain(std::chrono::milliseconds timeout) {
  AnnounceDrain();
  gate_.Close();
  acceptor_.Stop();
  return gate_.AwaitEmpty(timeout);
}

void Server::HandOver(int fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  connection.fd = fd;
  connections_->HandleNewConnection(&connection);
}

}  // namespace simile::net
