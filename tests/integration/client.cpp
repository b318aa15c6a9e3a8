#include "integration/client.h"

#include <utility>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/lookup.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::integration {
namespace {

constexpr std::chrono::seconds kTimeout{60};  // so that no test hangs
constexpr int kConnectsMax = 5;

// Whether the channel now has a connection. It may fail although a server listens: gRPC 1.51 reads
// the errno of connect() only after other calls that may change it, and then drops the connection.
bool ConnectOnce(grpc::Channel& channel) {
  const auto deadline = std::chrono::system_clock::now() + kTimeout;
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(-1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  for (int left = kConnectsMax; left > 0 && !ConnectOnce(*channel); --left) {
    grpc::experimental::ChannelResetConnectionBackoff(channel.get());
  }
  return channel;
}

void Prepare(const CallOptions& options, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + options.timeout.value_or(kTimeout));
  for (const auto& [key, value] : options.metadata) context.AddMetadata(key, value);
}

Outcome End(const grpc::Status& status, const grpc::ClientContext& context) {
  Outcome outcome{static_cast<absl::StatusCode>(status.error_code()), status.error_message(), {}};
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    outcome.trailers[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  return outcome;
}

template <class Method>
Outcome Make(const Method& method, const CallOptions& options = {}) {
  grpc::ClientContext context;
  Prepare(options, context);
  const grpc::Status status = method(&context);
  return End(status, context);
}

}  // namespace

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << absl::StatusCodeToString(outcome.code) << ": " << outcome.message;
}

class Client::Impl {
 public:
  explicit Impl(const std::string& address) : channel(Connect(address)) {}

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::SearchService::Stub> search = v1::SearchService::NewStub(channel);
  std::unique_ptr<v1::CollectionService::Stub> collections =
      v1::CollectionService::NewStub(channel);
  std::unique_ptr<v1::LookupService::Stub> lookup = v1::LookupService::NewStub(channel);
  std::unique_ptr<grpc::health::v1::Health::Stub> health =
      grpc::health::v1::Health::NewStub(channel);
};

Client::Client(const std::string& address) : impl_(std::make_unique<Impl>(address)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

Outcome Client::Search(const v1::SearchRequest& request, v1::SearchResponse& response,
                       const CallOptions& options) const {
  return Make([&](auto* context) { return impl_->search->Search(context, request, &response); },
              options);
}
Outcome Client::Recommend(const v1::RecommendRequest& request, v1::RecommendResponse& response,
                          const CallOptions& options) const {
  return Make([&](auto* context) { return impl_->search->Recommend(context, request, &response); },
              options);
}
Outcome Client::List(v1::ListCollectionsResponse& response) const {
  return Make([&](auto* context) { return impl_->collections->List(context, {}, &response); });
}
Outcome Client::Get(const std::string& name, v1::GetCollectionResponse& response) const {
  v1::GetCollectionRequest request;
  request.set_name(name);
  return Make([&](auto* context) { return impl_->collections->Get(context, request, &response); });
}
Outcome Client::DescribeFields(const v1::DescribeFieldsRequest& request,
                               v1::DescribeFieldsResponse& response) const {
  return Make([&](auto* context) {
    return impl_->collections->DescribeFields(context, request, &response);
  });
}
Outcome Client::Load(const std::string& name, const std::string& folder,
                     v1::LoadCollectionResponse& response) const {
  v1::LoadCollectionRequest request;
  request.set_name(name);
  request.set_folder(folder);
  return Make([&](auto* context) { return impl_->collections->Load(context, request, &response); });
}
Outcome Client::Reload(const std::string& name, v1::ReloadCollectionResponse& response) const {
  v1::ReloadCollectionRequest request;
  request.set_name(name);
  return Make(
      [&](auto* context) { return impl_->collections->Reload(context, request, &response); });
}
Outcome Client::Unload(const std::string& name) const {
  v1::UnloadCollectionRequest request;
  request.set_name(name);
  v1::UnloadCollectionResponse response;
  return Make(
      [&](auto* context) { return impl_->collections->Unload(context, request, &response); });
}
Outcome Client::Fetch(const v1::FetchRequest& request, v1::FetchResponse& response) const {
  return Make([&](auto* context) { return impl_->lookup->Fetch(context, request, &response); });
}
Outcome Client::Lookup(const v1::LookupRequest& request, v1::LookupResponse& response) const {
  return Make([&](auto* context) { return impl_->lookup->Lookup(context, request, &response); });
}

Outcome Client::SearchRaw(const std::string& bytes) const {
  grpc::ClientContext context;
  Prepare({}, context);
  grpc::GenericStub stub(impl_->channel);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  const auto call =
      stub.PrepareUnaryCall(&context, "/simile.v1.SearchService/Search", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool succeeded = false;
  queue.Next(&tag, &succeeded);
  return End(status, context);
}

Outcome Client::SearchAndCancel(const v1::SearchRequest& request) const {
  grpc::ClientContext context;
  Prepare({}, context);
  grpc::CompletionQueue queue;
  const auto call = impl_->search->AsyncSearch(&context, request, &queue);
  v1::SearchResponse response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  context.TryCancel();
  void* tag = nullptr;
  bool succeeded = false;
  queue.Next(&tag, &succeeded);
  return End(status, context);
}

Outcome Client::TryReflection() const {
  grpc::ClientContext context;
  Prepare({}, context);
  grpc::GenericStub stub(impl_->channel);
  grpc::CompletionQueue queue;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool succeeded = false;
    queue.Next(&tag, &succeeded);
  };
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  await();
  call->WritesDone(nullptr);
  await();
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  return End(status, context);
}

Health Client::CheckHealth(const std::string& service) const {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const Outcome outcome =
      Make([&](auto* context) { return impl_->health->Check(context, request, &response); });
  if (outcome.code == absl::StatusCode::kNotFound) return Health::kUnknownService;
  if (!outcome.ok()) return Health::kUnreachable;
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING ? Health::kServing
                                                                             : Health::kNotServing;
}

}  // namespace simile::integration
