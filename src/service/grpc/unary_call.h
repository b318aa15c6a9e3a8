#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <google/protobuf/arena.h>

#include "service/calls/call.h"
#include "service/grpc/exchange.h"
#include "service/grpc/server_call.h"

namespace simile::service {

// A method that answers a request once.
class UnaryMethod : public Method {
 public:
  UnaryMethod(RpcEnvironment& environment, const MethodRow& row)
      : Method(environment, row, Type::kUnary) {}

  using Message = google::protobuf::Message;
  // Of one call.
  struct Messages {
    Message* request = nullptr;
    Message* response = nullptr;  // null when the handler writes the response itself
  };
  virtual Messages NewMessages(google::protobuf::Arena& arena) const = 0;
  virtual void Handle(Call& call, const Messages& messages) const = 0;

 private:
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override;
};

// A call of a unary method as the transport sees it: reads the request, sends the response or
// error, counts and logs the call. Each loop's thread keeps the memory of up to 64 ended calls for
// the next calls.
class UnaryExchange final : public Exchange {
 public:
  UnaryExchange(UnaryMethod& method, net::Http2Stream& stream, net::CallHead head)
      : Exchange(method, stream, std::move(head)), method_(method) {
    call_.emplace(*this);
  }

  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory);

 private:
  absl::Status BeginWith(net::ReceivedMessage request) override;
  void Reject(const absl::Status& status) override { call_->Finish(status); }
  void Release() override { delete this; }

  // Frees the memory of the call, because a reply may wait long, and sends the end of the call. Any
  // thread; once.
  void End(ReplyMessage response, net::CallEnd end);

  UnaryMethod& method_;
  net::ReceivedMessage request_;

  // The call as its handler sees it.
  class Arrived final : public ServerCall<Call> {
   public:
    explicit Arrived(UnaryExchange& exchange);

    // Reads the request and calls the handler.
    void Run();
    void ReleaseRequest() override {
      assert(messages_.response == nullptr);
      messages_ = {};
      arena_.Reset();
      vectors_ = {};
    }
    const SentVectors& sent_vectors() const override { return vectors_; }
    void Finish(const absl::Status& status) override;
    void FinishWith(const Reply& reply) override;

   private:
    // Errors: while the call waited for a worker, the caller has gone or its deadline has passed.
    absl::Status CheckWanted() const;
    void End(absl::StatusOr<ReplyMessage> response);

    // Most requests, and what is built of their answers, need no other memory.
    static constexpr std::size_t kFirstBlockBytes = 4'096;

    UnaryExchange& exchange_;
    alignas(std::max_align_t) std::array<char, kFirstBlockBytes> first_block_;
    google::protobuf::Arena arena_{first_block_.data(), first_block_.size()};
    UnaryMethod::Messages messages_;  // on the arena
    SentVectors vectors_;             // of the request
  };
  std::optional<Arrived> call_;  // until it is sent
};

// A row of the table: `handle(call, request)`, which finishes with a Reply, or, with a Response,
// `handle(call, request, response)`, which fills it.
template <class Request, class Response, class HandleCall>
class TypedUnaryMethod final : public UnaryMethod {
 public:
  TypedUnaryMethod(RpcEnvironment& environment, const MethodRow& row, HandleCall handle)
      : UnaryMethod(environment, row), handle_(std::move(handle)) {}

  Messages NewMessages(google::protobuf::Arena& arena) const override {
    Messages messages;
    messages.request = google::protobuf::Arena::CreateMessage<Request>(&arena);
    if constexpr (!std::is_void_v<Response>) {
      messages.response = google::protobuf::Arena::CreateMessage<Response>(&arena);
    }
    return messages;
  }
  void Handle(Call& call, const Messages& messages) const override {
    const auto& request = static_cast<const Request&>(*messages.request);
    if constexpr (requires { request.collection(); }) {
      static_cast<void>(Guarded([&] { call.Describe(request.collection(), 0, 0); }));
    }
    if constexpr (std::is_void_v<Response>) {
      handle_(call, request);
    } else {
      handle_(call, request, static_cast<Response&>(*messages.response));
    }
  }

 private:
  const HandleCall handle_;
};

template <class Request, class Response = void, class HandleCall>
std::unique_ptr<Method> Unary(RpcEnvironment& environment, const MethodRow& row,
                              HandleCall handle) {
  return std::make_unique<TypedUnaryMethod<Request, Response, HandleCall>>(environment, row,
                                                                           std::move(handle));
}

}  // namespace simile::service
