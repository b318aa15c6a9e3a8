#include "integration/client.h"

#include <utility>

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "cli/client_security.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "simile/v1/admin.grpc.pb.h"
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

std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                       const cli::ClientSecurity& security) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(-1);
  auto channel = cli::OpenChannel(address, security, arguments);
  for (int left = kConnectsMax; left > 0 && !ConnectOnce(*channel); --left) {
    grpc::experimental::ChannelResetConnectionBackoff(channel.get());
  }
  return channel;
}

void Prepare(const CallOptions& options, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + options.timeout.value_or(kTimeout));
  for (const auto& [key, value] : options.metadata) context.AddMetadata(key, value);
}

// Fills in reason and field.
void ReadDetails(const google::rpc::Status& status, Outcome& outcome) {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest request;
  for (const google::protobuf::Any& detail : status.details()) {
    if (detail.UnpackTo(&info)) outcome.reason = info.reason();
    if (detail.UnpackTo(&request) && request.field_violations_size() > 0) {
      outcome.field = request.field_violations(0).field();
    }
  }
}

template <class Method>
Outcome Make(const Method& method, const CallOptions& options = {}) {
  grpc::ClientContext context;
  Prepare(options, context);
  const grpc::Status status = method(&context);
  return ReadOutcome(status, context);
}

// Reads the messages of Load, Reload or Rollback.
template <class Response, class Start>
Outcome MakeChange(const Start& start, ChangeAnswer& answer, const CallOptions& options,
                   const OnProgress& on_progress) {
  grpc::ClientContext context;
  Prepare(options, context);
  const std::unique_ptr<grpc::ClientReader<Response>> reader = start(&context);
  answer = {};
  Response message;
  while (reader->Read(&message)) {
    if (message.has_collection()) answer.collection = message.collection();
    if (!message.has_progress()) continue;
    answer.progress.push_back(message.progress());
    if (on_progress && !on_progress(message.progress())) context.TryCancel();
  }
  return ReadOutcome(reader->Finish(), context);
}

// The fields of this number in a message whose .proto file is not compiled in.
std::vector<std::string> ReadFields(const std::string& message, int number) {
  google::protobuf::UnknownFieldSet fields;
  fields.ParseFromString(message);
  std::vector<std::string> found;
  for (int index = 0; index < fields.field_count(); ++index) {
    const google::protobuf::UnknownField& field = fields.field(index);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      found.push_back(field.length_delimited());
    }
  }
  return found;
}

// ServerReflectionResponse.list_services_response.service.name.
std::vector<std::string> ParseServices(const grpc::ByteBuffer& response) {
  grpc::Slice slice;
  std::vector<std::string> names;
  if (!response.DumpToSingleSlice(&slice).ok()) return names;
  const std::string bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
  for (const std::string& list : ReadFields(bytes, 6)) {
    for (const std::string& service : ReadFields(list, 1)) {
      for (std::string& name : ReadFields(service, 1)) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

Outcome ReadOutcome(const grpc::Status& status, const grpc::ClientContext& context) {
  Outcome outcome{static_cast<absl::StatusCode>(status.error_code()), status.error_message(), {}};
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) ReadDetails(details, outcome);
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    outcome.trailers[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  return outcome;
}

Outcome ReadOutcome(const v1::SearchStreamResponse& response) {
  return ReadOutcome(response.error());
}

Outcome ReadOutcome(const google::rpc::Status& status) {
  Outcome outcome{static_cast<absl::StatusCode>(status.code()), status.message(), {}};
  ReadDetails(status, outcome);
  return outcome;
}

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << absl::StatusCodeToString(outcome.code) << ": " << outcome.message;
}

class Client::Impl {
 public:
  Impl(const std::string& address, const cli::ClientSecurity& security)
      : channel(Connect(address, security)) {}

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::SearchService::Stub> search = v1::SearchService::NewStub(channel);
  std::unique_ptr<v1::CollectionService::Stub> collections =
      v1::CollectionService::NewStub(channel);
  std::unique_ptr<v1::LookupService::Stub> lookup = v1::LookupService::NewStub(channel);
  std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(channel);
  std::unique_ptr<grpc::health::v1::Health::Stub> health =
      grpc::health::v1::Health::NewStub(channel);
};

Client::Client(const std::string& address, const cli::ClientSecurity& security)
    : impl_(std::make_unique<Impl>(address, security)) {}
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
Outcome Client::Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) const {
  return Make([&](auto* context) { return impl_->search->Explain(context, request, &response); });
}
Outcome Client::Export(const v1::ExportRequest& request,
                       const std::function<bool(const v1::ExportResponse&)>& on_message,
                       const CallOptions& options) const {
  return Make(
      [&](auto* context) {
        const auto stream = impl_->search->Export(context, request);
        for (v1::ExportResponse response; stream->Read(&response);) {
          if (!on_message(response)) context->TryCancel();
        }
        return stream->Finish();
      },
      options);
}
Outcome Client::Export(const v1::ExportRequest& request,
                       std::vector<v1::ExportResponse>& responses) const {
  responses.clear();
  return Export(request, [&](const v1::ExportResponse& response) {
    responses.push_back(response);
    return true;
  });
}
Outcome Client::SearchStream(const std::vector<v1::SearchStreamRequest>& requests,
                             std::vector<v1::SearchStreamResponse>& responses,
                             const CallOptions& options) const {
  return Make(
      [&](auto* context) {
        const auto stream = impl_->search->SearchStream(context);
        for (const v1::SearchStreamRequest& request : requests) {
          if (!stream->Write(request)) break;  // the call has ended
        }
        stream->WritesDone();
        responses.clear();
        for (v1::SearchStreamResponse response; stream->Read(&response);) {
          responses.push_back(response);
        }
        return stream->Finish();
      },
      options);
}
Outcome Client::List(const v1::ListCollectionsRequest& request,
                     v1::ListCollectionsResponse& response) const {
  return Make([&](auto* context) {
    return impl_->collections->ListCollections(context, request, &response);
  });
}
Outcome Client::List(v1::ListCollectionsResponse& response) const { return List({}, response); }
Outcome Client::Get(const std::string& collection, v1::GetCollectionResponse& response) const {
  v1::GetCollectionRequest request;
  request.set_collection(collection);
  return Make([&](auto* context) {
    return impl_->collections->GetCollection(context, request, &response);
  });
}
Outcome Client::DescribeFields(const v1::DescribeFieldsRequest& request,
                               v1::DescribeFieldsResponse& response) const {
  return Make([&](auto* context) {
    return impl_->collections->DescribeFields(context, request, &response);
  });
}

Outcome Client::Load(const v1::LoadCollectionRequest& request, ChangeAnswer& answer,
                     const CallOptions& options, const OnProgress& on_progress) const {
  return MakeChange<v1::LoadCollectionResponse>(
      [&](auto* context) { return impl_->collections->LoadCollection(context, request); }, answer,
      options, on_progress);
}
Outcome Client::Load(const std::string& collection, const std::string& folder,
                     ChangeAnswer& answer) const {
  v1::LoadCollectionRequest request;
  request.set_collection(collection);
  request.set_folder(folder);
  return Load(request, answer);
}
Outcome Client::Reload(const v1::ReloadCollectionRequest& request, ChangeAnswer& answer,
                       const CallOptions& options, const OnProgress& on_progress) const {
  return MakeChange<v1::ReloadCollectionResponse>(
      [&](auto* context) { return impl_->collections->ReloadCollection(context, request); }, answer,
      options, on_progress);
}
Outcome Client::Reload(const std::string& collection, ChangeAnswer& answer) const {
  v1::ReloadCollectionRequest request;
  request.set_collection(collection);
  return Reload(request, answer);
}
Outcome Client::Rollback(const v1::RollbackCollectionRequest& request, ChangeAnswer& answer,
                         const CallOptions& options, const OnProgress& on_progress) const {
  return MakeChange<v1::RollbackCollectionResponse>(
      [&](auto* context) { return impl_->collections->RollbackCollection(context, request); },
      answer, options, on_progress);
}
Outcome Client::Rollback(const std::string& collection, ChangeAnswer& answer) const {
  v1::RollbackCollectionRequest request;
  request.set_collection(collection);
  return Rollback(request, answer);
}
Outcome Client::Unload(const v1::UnloadCollectionRequest& request) const {
  v1::UnloadCollectionResponse response;
  return Make([&](auto* context) {
    return impl_->collections->UnloadCollection(context, request, &response);
  });
}
Outcome Client::Unload(const std::string& collection) const {
  v1::UnloadCollectionRequest request;
  request.set_collection(collection);
  return Unload(request);
}

Outcome Client::Fetch(const v1::FetchRequest& request, v1::FetchResponse& response) const {
  return Make([&](auto* context) { return impl_->lookup->Fetch(context, request, &response); });
}
Outcome Client::Lookup(const v1::LookupRequest& request, v1::LookupResponse& response) const {
  return Make([&](auto* context) { return impl_->lookup->Lookup(context, request, &response); });
}

Outcome Client::GetServerInfo(v1::GetServerInfoResponse& response) const {
  return Make([&](auto* context) { return impl_->admin->GetServerInfo(context, {}, &response); });
}

Outcome Client::GetStats(v1::GetStatsResponse& response) const {
  return Make([&](auto* context) { return impl_->admin->GetStats(context, {}, &response); });
}

Outcome Client::Diagnose(v1::DiagnoseResponse& response) const {
  return Make([&](auto* context) { return impl_->admin->Diagnose(context, {}, &response); });
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
  return ReadOutcome(status, context);
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
  return ReadOutcome(status, context);
}

Outcome Client::ListServices(std::vector<std::string>& services) const {
  grpc::ClientContext context;
  Prepare({}, context);
  grpc::GenericStub stub(impl_->channel);
  grpc::CompletionQueue queue;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool succeeded = false;
    queue.Next(&tag, &succeeded);
    return succeeded;
  };
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  await();
  const grpc::Slice list_services("\x3a\x01*");  // ServerReflectionRequest.list_services, field 7
  call->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
  await();
  call->WritesDone(nullptr);
  await();
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  if (await()) services = ParseServices(response);
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  return ReadOutcome(status, context);
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
