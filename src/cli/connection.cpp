#include "cli/connection.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/file_descriptor.h"
#include "base/message_text.h"
#include "cli/client_security.h"
#include "cli/command_tree.h"
#include "cli/errors.h"
#include "cli/flag_names.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "simile/v1/admin.grpc.pb.h"
#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/lookup.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::cli {
namespace {

constexpr timeval kGreetingTimeout{.tv_sec = 0, .tv_usec = 500'000};

base::FileDescriptor ConnectTo(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &raw);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  if (failed != 0) return {};
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    base::FileDescriptor fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO}) {
      static_cast<void>(
          setsockopt(fd.get(), SOL_SOCKET, option, &kGreetingTimeout, sizeof kGreetingTimeout));
    }
    if (connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) return fd;
  }
  return {};
}

// The first bytes that arrive, as text.
std::string Greeting(const base::FileDescriptor& fd) {
  std::array<char, 1024> bytes{};
  const ssize_t received = recv(fd.get(), bytes.data(), bytes.size(), 0);
  return received > 0 ? std::string(bytes.data(), static_cast<std::size_t>(received)) : "";
}

// The reason that a full server gives when it refuses a connection. It sends this reason as
// HTTP/1.1, unasked and unencrypted, even if it otherwise speaks TLS. Makes a new connection, so
// use this only after a connection failed. Empty if no such reason arrives within half a second.
//   address  HOST:PORT
std::string RefusalText(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::string reply = Greeting(ConnectTo(host, address.substr(colon + 1)));
  constexpr std::string_view kHeadersEnd = "\r\n\r\n";
  const std::size_t body = reply.find(kHeadersEnd);
  if (!reply.starts_with("HTTP/1.1 ") || body == std::string::npos) return "";
  const std::size_t text = body + kHeadersEnd.size();
  return reply.substr(text, reply.find('\n', text) - text);
}

constexpr std::string_view kNoReason = "no connection";
constexpr std::string_view kNoGrpcServer = "no gRPC server";
constexpr std::string_view kDoesNotEncrypt = "it does not encrypt: leave out --tls and --ca";
constexpr int kConnectsMax = 3;
// Allowance for the bytes around a reply of kReplyBytesMax.
constexpr int kReplyFrameBytes = 1 << 16;
constexpr std::uint32_t kCollectionsPerPage = 1'000;  // the most that a server returns

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kReplyBytesMax + kReplyFrameBytes);
  // Ignores http_proxy and similar variables, which are meant for the web.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// Explanations for OpenSSL's messages, and for a server that closes the connection. All mean that a
// server listens.
constexpr std::string_view kHangsUp =
    "it closes the connection; it may want TLS (--tls) or a client certificate (--cert)";
constexpr std::pair<std::string_view, std::string_view> kTlsReasons[] = {
    {"WRONG_VERSION_NUMBER", kDoesNotEncrypt},
    {"wrong version number", kDoesNotEncrypt},
    {"CERTIFICATE_VERIFY_FAILED",
     "its certificate is not trusted, or has expired; --ca FILE names the authority that signed "
     "it"},
    {"certificate verify failed",
     "its certificate is not trusted, or has expired; --ca FILE names the authority that signed "
     "it"},
    {"is not in peer certificate",
     "its certificate has another name than this address; --server-name NAME names it"},
    {"certificate required", "it wants a client certificate: --cert and --key"},
    {"Socket closed", kHangsUp},
    {"reset by peer", kHangsUp},
};

// Why a listening server was not reached; empty if no server is known to listen.
std::string_view RefusalReason(std::string_view message) {
  for (const auto& [text, reason] : kTlsReasons) {
    if (message.find(text) != std::string_view::npos) return reason;
  }
  return {};
}

// The reason inside gRPC's message for an unreachable server, which lists gRPC's internal steps.
std::string_view UnreachedReason(std::string_view message) {
  if (const std::string_view refusal = RefusalReason(message); !refusal.empty()) return refusal;
  if (message.find("Connection refused") != std::string_view::npos) return "connection refused";
  if (message.find("DNS resolution failed") != std::string_view::npos) return "no such host";
  if (message.find("No route to host") != std::string_view::npos) return "no route to host";
  if (message.find("unreachable") != std::string_view::npos) return "network unreachable";
  if (message.find("timed out") != std::string_view::npos) return "connecting timed out";
  if (message.find("http1.x") != std::string_view::npos ||
      message.find("Failed parsing HTTP/2") != std::string_view::npos) {
    return kNoGrpcServer;
  }
  return kNoReason;
}

// Whether the reason may be a full server, which answers in another protocol and closes.
bool MayBeRefused(std::string_view reason) {
  return reason == kNoGrpcServer || reason == kDoesNotEncrypt || reason == kHangsUp;
}

}  // namespace

struct Connection::Channel {
  Channel(const std::string& to, std::optional<std::chrono::milliseconds> call_timeout,
          bool is_default, ClientSecurity own_security, const CommandSpec* called_for)
      : address(to),
        timeout(call_timeout),
        timeout_is_default(is_default),
        security(std::move(own_security)),
        command(called_for),
        channel(OpenChannel(address, security, Arguments())),
        search(v1::SearchService::NewStub(channel)),
        collections(v1::CollectionService::NewStub(channel)),
        lookup(v1::LookupService::NewStub(channel)),
        admin(v1::AdminService::NewStub(channel)),
        health(grpc::health::v1::Health::NewStub(channel)) {}

  // Makes one call and converts its status.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(const std::unique_ptr<Stub>& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) const {
    Response response;
    absl::Status status = Connected([&](grpc::ClientContext& context) {
      return ((*stub).*method)(&context, request, &response);
    });
    if (!status.ok()) return status;
    return response;
  }

  // Makes a change. Its answer is a stream of progress and the result.
  template <typename Request, typename Response>
  absl::StatusOr<v1::Collection> Change(
      std::unique_ptr<grpc::ClientReader<Response>> (v1::CollectionService::Stub::*method)(
          grpc::ClientContext*, const Request&),
      const Request& request, const OnProgress& on_progress) const {
    std::optional<v1::Collection> served;
    absl::Status status = Connected([&](grpc::ClientContext& context) {
      const auto reader = ((*collections).*method)(&context, request);
      Response response;
      while (reader->Read(&response)) {
        if (response.has_progress()) on_progress(response.progress());
        if (response.has_collection()) served = std::move(*response.mutable_collection());
      }
      return reader->Finish();
    });
    if (!status.ok()) return status;
    if (!served) {
      return absl::InternalError(
          fmt::format("the server at {} ended the call without saying what it serves", address));
    }
    return *std::move(served);
  }

  // Makes one call and converts its status. Makes it again if the connection failed without a
  // reason.
  absl::Status Connected(const std::function<grpc::Status(grpc::ClientContext&)>& call) const {
    const auto started_at = std::chrono::system_clock::now();
    for (int connects_left = kConnectsMax;; --connects_left) {
      grpc::ClientContext context;
      if (timeout) context.set_deadline(started_at + *timeout);
      const grpc::Status status = call(context);
      if (status.ok()) return absl::OkStatus();
      if (connects_left <= 1 || !GaveUpWithoutReason(status)) return ToStatus(status);
      grpc::experimental::ChannelResetConnectionBackoff(channel.get());
    }
  }

  // Whether no server was reached. On a ready channel UNAVAILABLE comes from the server, for
  // example while it drains.
  bool Unreached(const grpc::Status& status) const {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
           channel->GetState(false) != GRPC_CHANNEL_READY;
  }

  // Whether gRPC gave up a connection without a reason. gRPC 1.51 reads connect()'s errno after
  // other calls that may change it. Nothing was sent yet, so a retry is safe.
  bool GaveUpWithoutReason(const grpc::Status& status) const {
    return Unreached(status) && UnreachedReason(status.error_message()) == kNoReason;
  }

  // The error of a call that did not reach a server.
  absl::Status UnreachedStatus(std::string_view message) const {
    const std::string_view reason = UnreachedReason(message);
    if (MayBeRefused(reason)) {
      const std::string refusal = RefusalText(address);
      if (!refusal.empty()) {
        return absl::UnavailableError(
            fmt::format("the server at {} takes no further connection: {}", address, refusal));
      }
    }
    if (reason == kNoGrpcServer) {
      return absl::UnavailableError(fmt::format(
          "something other than a gRPC server listens at {}; the metrics have a port of their own: "
          "give the address that `simile serve` prints after \"listening on\"",
          address));
    }
    if (!RefusalReason(message).empty()) {
      return absl::UnavailableError(
          fmt::format("no connection to the server at {}: {}", address, reason));
    }
    return absl::UnavailableError(fmt::format(
        "cannot reach a server at {} ({}); start one with: simile serve --collection NAME=FOLDER",
        address, reason));
  }

  // The message for a call that was not answered in time.
  std::string TimeoutText() const {
    const std::string limit =
        fmt::format("{:.4g} s{}", std::chrono::duration<double>(*timeout).count(),
                    timeout_is_default ? ", the default of --timeout" : "");
    if (channel->GetState(false) == GRPC_CHANNEL_READY) {
      return fmt::format("no answer from {} within {}; --timeout allows more", address, limit);
    }
    return fmt::format(
        "no connection to a gRPC server at {} within {}; check the address, or allow more with "
        "--timeout",
        address, limit);
  }

  absl::Status ToStatus(const grpc::Status& status) const {
    const std::string& message = status.error_message();
    if (Unreached(status)) return UnreachedStatus(message);
    // The server's own error names a limit of the server, which a longer timeout would not change.
    const bool is_servers = message.find("limits.search_deadline_") != std::string::npos;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && timeout && !is_servers) {
      return WithDetails(absl::DeadlineExceededError(TimeoutText()), status.error_details());
    }
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && security.token.empty()) {
      return WithDetails(absl::UnauthenticatedError(fmt::format(
                             "the server at {} wants to know who calls: give --token-file FILE (or "
                             "SIMILE_TOKEN){}",
                             address, security.certificate.empty() ? ", or --cert and --key" : "")),
                         status.error_details());
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnimplementedError(fmt::format(
          "the server at {} does not implement this call; is it a Simile server of this version?",
          address));
    }
    absl::Status error =
        WithDetails(absl::Status(static_cast<absl::StatusCode>(status.error_code()), message),
                    status.error_details());
    if (command == nullptr) return error;
    return WithMeant(InFlags(error, command->name, command->collection_given_as));
  }

  // Adds advice to the error of an unknown collection, because its name may be the rest of an
  // unquoted value.
  absl::Status WithMeant(const absl::Status& error) const {
    const bool unknown =
        ParseDetails(error).reason == base::InfoOf(base::ErrorReason::kCollectionNotFound).name;
    const bool is_the_text =
        error.message().find("no collection " + base::Quoted(command->collection_text)) !=
        std::string::npos;
    if (!unknown || command->collection_meant.empty() || !is_the_text) return error;
    return WithAdvice(error, fmt::format("The text alone names the collection. Did you mean {}?",
                                         command->collection_meant));
  }

  const std::string address;
  const std::optional<std::chrono::milliseconds> timeout;
  const bool timeout_is_default;
  const ClientSecurity security;
  const CommandSpec* const command;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::SearchService::Stub> search;
  const std::unique_ptr<v1::CollectionService::Stub> collections;
  const std::unique_ptr<v1::LookupService::Stub> lookup;
  const std::unique_ptr<v1::AdminService::Stub> admin;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

Connection::Connection(const std::string& address, std::optional<std::chrono::milliseconds> timeout,
                       const ClientSecurity& security, const CommandSpec* command,
                       bool timeout_is_default)
    : channel_(std::make_unique<Channel>(address, timeout, timeout_is_default, security, command)) {
}

Connection::~Connection() = default;

const std::string& Connection::address() const { return channel_->address; }

const ClientSecurity& Connection::security() const { return channel_->security; }

absl::StatusOr<v1::SearchResponse> Connection::Search(const v1::SearchRequest& request) const {
  return channel_->Call(channel_->search, &v1::SearchService::Stub::Search, request);
}

absl::StatusOr<v1::RecommendResponse> Connection::Recommend(
    const v1::RecommendRequest& request) const {
  return channel_->Call(channel_->search, &v1::SearchService::Stub::Recommend, request);
}

absl::StatusOr<v1::ExplainResponse> Connection::Explain(const v1::ExplainRequest& request) const {
  return channel_->Call(channel_->search, &v1::SearchService::Stub::Explain, request);
}

absl::StatusOr<v1::ListCollectionsResponse> Connection::List() const {
  v1::ListCollectionsResponse all;
  v1::ListCollectionsRequest request;
  request.set_page_size(kCollectionsPerPage);
  do {
    auto page = channel_->Call(channel_->collections, &v1::CollectionService::Stub::ListCollections,
                               request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    all.mutable_collections()->MergeFrom(page->collections());
    *all.mutable_backend() = std::move(*page->mutable_backend());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Collection> Connection::Get(const std::string& name) const {
  v1::GetCollectionRequest request;
  request.set_collection(name);
  auto response =
      channel_->Call(channel_->collections, &v1::CollectionService::Stub::GetCollection, request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_collection());
}

absl::StatusOr<v1::DescribeFieldsResponse> Connection::DescribeFields(
    const v1::DescribeFieldsRequest& request) const {
  return channel_->Call(channel_->collections, &v1::CollectionService::Stub::DescribeFields,
                        request);
}

absl::StatusOr<v1::Collection> Connection::Load(const v1::LoadCollectionRequest& request,
                                                const OnProgress& on_progress) const {
  return channel_->Change(&v1::CollectionService::Stub::LoadCollection, request, on_progress);
}

absl::StatusOr<v1::Collection> Connection::Reload(const v1::ReloadCollectionRequest& request,
                                                  const OnProgress& on_progress) const {
  return channel_->Change(&v1::CollectionService::Stub::ReloadCollection, request, on_progress);
}

absl::StatusOr<v1::Collection> Connection::Rollback(const v1::RollbackCollectionRequest& request,
                                                    const OnProgress& on_progress) const {
  return channel_->Change(&v1::CollectionService::Stub::RollbackCollection, request, on_progress);
}

absl::Status Connection::Unload(const v1::UnloadCollectionRequest& request) const {
  return channel_
      ->Call(channel_->collections, &v1::CollectionService::Stub::UnloadCollection, request)
      .status();
}

absl::StatusOr<v1::FetchResponse> Connection::Fetch(const v1::FetchRequest& request) const {
  return channel_->Call(channel_->lookup, &v1::LookupService::Stub::Fetch, request);
}

absl::StatusOr<v1::LookupResponse> Connection::Lookup(const v1::LookupRequest& request) const {
  return channel_->Call(channel_->lookup, &v1::LookupService::Stub::Lookup, request);
}

absl::StatusOr<v1::GetServerInfoResponse> Connection::GetServerInfo() const {
  return channel_->Call(channel_->admin, &v1::AdminService::Stub::GetServerInfo,
                        v1::GetServerInfoRequest());
}

absl::StatusOr<v1::GetStatsResponse> Connection::GetStats() const {
  return channel_->Call(channel_->admin, &v1::AdminService::Stub::GetStats, v1::GetStatsRequest());
}

absl::StatusOr<v1::DiagnoseResponse> Connection::Diagnose() const {
  return channel_->Call(channel_->admin, &v1::AdminService::Stub::Diagnose, v1::DiagnoseRequest());
}

absl::StatusOr<Health> Connection::CheckHealth(const std::string& name) const {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(name);
  const auto response =
      channel_->Call(channel_->health, &grpc::health::v1::Health::Stub::Check, request);
  if (!response.ok()) return response.status();
  return response->status() == grpc::health::v1::HealthCheckResponse::SERVING ? Health::kServing
                                                                              : Health::kNotServing;
}

}  // namespace simile::cli
