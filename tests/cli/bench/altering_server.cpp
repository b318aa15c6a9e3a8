#include "cli/bench/altering_server.h"

#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::cli::bench {

class AlteringServer::Searches final : public v1::SearchService::Service {
 public:
  Searches(const std::shared_ptr<grpc::Channel>& channel, Alter alter)
      : stub_(v1::SearchService::NewStub(channel)), alter_(std::move(alter)) {}

  grpc::Status Search(grpc::ServerContext*, const v1::SearchRequest* request,
                      v1::SearchResponse* response) override {
    grpc::ClientContext context;
    const grpc::Status status = stub_->Search(&context, *request, response);
    if (status.ok()) alter_(*request, *response);
    return status;
  }

  grpc::Status SearchStream(grpc::ServerContext* context,
                            grpc::ServerReaderWriter<v1::SearchStreamResponse,
                                                     v1::SearchStreamRequest>* stream) override {
    v1::SearchStreamRequest request;
    while (stream->Read(&request)) {
      v1::SearchStreamResponse response;
      response.set_tag(request.tag());
      const grpc::Status status = Search(context, &request.search(), response.mutable_search());
      if (!status.ok()) return status;
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  const std::unique_ptr<v1::SearchService::Stub> stub_;
  const Alter alter_;
};

class AlteringServer::Collections final : public v1::CollectionService::Service {
 public:
  explicit Collections(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::CollectionService::NewStub(channel)) {}

  grpc::Status ListCollections(grpc::ServerContext*, const v1::ListCollectionsRequest* request,
                               v1::ListCollectionsResponse* response) override {
    grpc::ClientContext context;
    return stub_->ListCollections(&context, *request, response);
  }

 private:
  const std::unique_ptr<v1::CollectionService::Stub> stub_;
};

namespace {

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

AlteringServer::AlteringServer(const std::string& behind, Alter alter)
    : searches_(std::make_unique<Searches>(ChannelTo(behind), std::move(alter))),
      collections_(std::make_unique<Collections>(ChannelTo(behind))) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(searches_.get());
  builder.RegisterService(collections_.get());
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

AlteringServer::~AlteringServer() { server_->Shutdown(); }

}  // namespace simile::cli::bench
