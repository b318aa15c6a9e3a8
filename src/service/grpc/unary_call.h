#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/grpc/method.h"
#include "service/grpc/server_call.h"

namespace simile::service {

// A method that answers a request once.
class UnaryMethod : public Method {
 public:
  UnaryMethod(RpcEnvironment& environment, const MethodRow& row);
  ~UnaryMethod() override;

  void TakeCalls(MethodService& service, int index, net::IoThread& thread) override;

  using Message = google::protobuf::Message;
  virtual Message& NewRequest(google::protobuf::Arena& arena) const = 0;
  // Null when the handler writes the response itself.
  virtual Message* NewResponse(google::protobuf::Arena& arena) const = 0;
  virtual void Handle(Call& call, const Message& request, Message* response) const = 0;

  class Calls;

 private:
  std::unique_ptr<Calls> calls_;
};

// The Calls of a unary method as gRPC sees them: asks for one, reads its request, sends the
// response or error, counts and logs it.
class UnaryExchange final : public net::OpenCall {
 public:
  // What the exchanges of a method have in common.
  struct Shared {
    const UnaryMethod& method;
    MethodService& service;
    int index;
    net::IoThread& thread;
  };

  // Asks gRPC for a call.
  //   calls  where exchanges come from and go to
  UnaryExchange(const Shared& shared, UnaryMethod::Calls& calls);

 private:
  void OnArrived(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  void Cut() override { context_.TryCancel(); }

  // Runs the handler here or on a worker.
  absl::Status Begin();
  // Sends the end of the call, whose memory is freed first: a reply may wait long. Any thread;
  // once.
  void Send(const grpc::ByteBuffer& response, const grpc::Status& status);
  // One of the two last events.
  void End();

  const Shared& shared_;
  UnaryMethod::Calls& calls_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  net::IoEventOf<UnaryExchange> arrived_event_{*this, &UnaryExchange::OnArrived};
  net::IoEventOf<UnaryExchange> finished_event_{*this, &UnaryExchange::OnFinished};
  net::IoEventOf<UnaryExchange> done_event_{*this, &UnaryExchange::OnDone};
  int ends_ = 0;
  std::stop_source cancelled_;

  // The call as its handler sees it.
  class Arrived final : public ServerCall<Call> {
   public:
    explicit Arrived(UnaryExchange& exchange);

    // Reads the request and calls the handler.
    void Run();
    // The same, unless its caller has left meanwhile.
    void RunOnWorker();
    void Finish(const absl::Status& status) override;
    void FinishWith(const Reply& reply) override;

   private:
    // Ends the call with what `serialize` returns, unless its caller is gone.
    void EndWith(absl::FunctionRef<absl::StatusOr<grpc::ByteBuffer>()> serialize);
    void End(const absl::Status& status, const grpc::ByteBuffer& response);

    // Most requests, and what is built of their answers, need no other memory.
    static constexpr std::size_t kFirstBlockBytes = 4'096;

    UnaryExchange& exchange_;
    alignas(std::max_align_t) std::array<char, kFirstBlockBytes> first_block_;
    google::protobuf::Arena arena_{first_block_.data(), first_block_.size()};
    google::protobuf::Message* response_ = nullptr;  // on the arena
  };
  std::optional<Arrived> call_;  // until it is sent
};

// A row of the table: `handle(call, request)`, which finishes with a Reply, or, with a Response,
// `handle(call, request, response)`, which fills it.
template <class Request, class Response, class HandleCall>
class UnaryMethodOf final : public UnaryMethod {
 public:
  UnaryMethodOf(RpcEnvironment& environment, const MethodRow& row, HandleCall handle)
      : UnaryMethod(environment, row), handle_(std::move(handle)) {}

  Message& NewRequest(google::protobuf::Arena& arena) const override {
    return *google::protobuf::Arena::CreateMessage<Request>(&arena);
  }
  Message* NewResponse(google::protobuf::Arena& arena) const override {
    if constexpr (std::is_void_v<Response>) {
      return nullptr;
    } else {
      return google::protobuf::Arena::CreateMessage<Response>(&arena);
    }
  }
  void Handle(Call& call, const Message& request, Message* response) const override {
    if constexpr (std::is_void_v<Response>) {
      handle_(call, static_cast<const Request&>(request));
    } else {
      handle_(call, static_cast<const Request&>(request), static_cast<Response&>(*response));
    }
  }

 private:
  const HandleCall handle_;
};

template <class Request, class Response = void, class HandleCall>
std::unique_ptr<Method> Unary(RpcEnvironment& environment, const MethodRow& row,
                              HandleCall handle) {
  return std::make_unique<UnaryMethodOf<Request, Response, HandleCall>>(environment, row,
                                                                        std::move(handle));
}

}  // namespace simile::service
