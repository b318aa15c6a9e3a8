// grpc.testing.TestService on grpc++, which answers the same cases as interop_server, for
// comparison.
//
//   grpc_interop_server --port N [--tls-certificate FILE --tls-key FILE]
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "test_service.grpc.pb.h"

namespace simile::interop {
namespace {

using namespace grpc::testing;

void EchoMetadata(grpc::ServerContext& context) {
  for (const auto& [name, value] : context.client_metadata()) {
    const std::string text(value.data(), value.size());
    if (name == "x-grpc-test-echo-initial") {
      context.AddInitialMetadata("x-grpc-test-echo-initial", text);
    }
    if (name == "x-grpc-test-echo-trailing-bin") {
      context.AddTrailingMetadata("x-grpc-test-echo-trailing-bin", text);
    }
  }
}

grpc::Status StatusOf(const EchoStatus& status) {
  return {static_cast<grpc::StatusCode>(status.code()), status.message()};
}

template <class Stream>
void SendWanted(const StreamingOutputCallRequest& request, Stream& stream) {
  for (const ResponseParameters& each : request.response_parameters()) {
    std::promise<void>().get_future().wait_for(std::chrono::microseconds(each.interval_us()));
    StreamingOutputCallResponse response;
    response.mutable_payload()->mutable_body()->resize(static_cast<std::size_t>(each.size()));
    stream.Write(response);
  }
}

class Service final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty* /*request*/,
                         Empty* /*response*/) override {
    EchoMetadata(*context);
    return {};
  }
  grpc::Status UnaryCall(grpc::ServerContext* context, const SimpleRequest* request,
                         SimpleResponse* response) override {
    EchoMetadata(*context);
    if (request->expect_compressed().value()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "expected a compressed request"};
    }
    if (request->response_status().code() != 0) return StatusOf(request->response_status());
    response->mutable_payload()->mutable_body()->resize(
        static_cast<std::size_t>(request->response_size()));
    return {};
  }
  grpc::Status StreamingOutputCall(
      grpc::ServerContext* context, const StreamingOutputCallRequest* request,
      grpc::ServerWriter<StreamingOutputCallResponse>* writer) override {
    EchoMetadata(*context);
    SendWanted(*request, *writer);
    return {};
  }
  grpc::Status StreamingInputCall(grpc::ServerContext* context,
                                  grpc::ServerReader<StreamingInputCallRequest>* reader,
                                  StreamingInputCallResponse* response) override {
    EchoMetadata(*context);
    StreamingInputCallRequest request;
    std::size_t bytes = 0;
    while (reader->Read(&request)) {
      if (request.expect_compressed().value()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "expected a compressed request"};
      }
      bytes += request.payload().body().size();
    }
    response->set_aggregated_payload_size(static_cast<int>(bytes));
    return {};
  }
  using Duplex = grpc::ServerReaderWriter<StreamingOutputCallResponse, StreamingOutputCallRequest>;
  grpc::Status FullDuplexCall(grpc::ServerContext* context, Duplex* stream) override {
    EchoMetadata(*context);
    StreamingOutputCallRequest request;
    while (stream->Read(&request)) {
      SendWanted(request, *stream);
      if (request.has_response_status()) return StatusOf(request.response_status());
    }
    return {};
  }
  grpc::Status HalfDuplexCall(grpc::ServerContext* context, Duplex* stream) override {
    EchoMetadata(*context);
    std::vector<StreamingOutputCallRequest> requests;
    StreamingOutputCallRequest request;
    while (stream->Read(&request)) requests.push_back(request);
    for (const StreamingOutputCallRequest& each : requests) SendWanted(each, *stream);
    return {};
  }
};

std::string ReadFile(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

int Run(std::map<std::string, std::string> flags) {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (flags.contains("--tls-certificate")) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs = {
        {ReadFile(flags["--tls-key"]), ReadFile(flags["--tls-certificate"])}};
    credentials = grpc::SslServerCredentials(options);
  }
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + flags["--port"], credentials, &port);
  builder.SetMaxReceiveMessageSize(20 << 20);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace simile::interop

int main(int count, char** arguments) {
  std::map<std::string, std::string> flags{{"--port", "0"}};
  for (int i = 1; i + 1 < count; i += 2) flags[arguments[i]] = arguments[i + 1];
  return simile::interop::Run(std::move(flags));
}
