#pragma once

#include <string_view>

#include <google/protobuf/arena.h>
#include <grpcpp/support/server_callback.h>

#include "service/grpc/server_call.h"

namespace simile::service {

// gRPC's side of the Calls of all unary methods: reads the request, sends the response or error,
// counts and logs the call. Deletes itself in OnDone, which gRPC calls after Finish.
class UnaryCall final : public grpc::ServerUnaryReactor, public ServerCall<Call> {
 public:
  // Starts a call: `handle(call, request, response)`, or the error of a call that comes after the
  // server began to stop, or whose request cannot be parsed.
  //   method  "simile.v1.SearchService/Search"; static storage
  template <class Request, class Response, class Handle>
  static grpc::ServerUnaryReactor* Start(RpcEnvironment& environment,
                                         grpc::CallbackServerContext& context,
                                         std::string_view method, const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer& response, Handle&& handle) {
    auto* const call = new UnaryCall(environment, context, method, response);
    auto& parsed = *google::protobuf::Arena::CreateMessage<Request>(&call->arena_);
    auto& answer = *google::protobuf::Arena::CreateMessage<Response>(&call->arena_);
    call->answer_ = &answer;
    const absl::Status begun = call->Begin(request, parsed);
    if (begun.ok()) {
      handle(static_cast<Call&>(*call), parsed, answer);
    } else {
      call->Finish(begun);
    }
    return call;
  }

  void Finish(const absl::Status& status) override;

 private:
  UnaryCall(RpcEnvironment& environment, grpc::CallbackServerContext& context,
            std::string_view method, grpc::ByteBuffer& response);

  void OnCancel() override { Cancel(); }
  void OnDone() override;

  grpc::CallbackServerContext& context_;
  grpc::ByteBuffer& response_;
  google::protobuf::Arena arena_;
  const google::protobuf::Message* answer_ = nullptr;  // on the arena
};

}  // namespace simile::service
