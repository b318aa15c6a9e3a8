#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <absl/status/statusor.h>
#include <google/protobuf/message.h>

#include "service/calls/call.h"
#include "service/grpc/exchange.h"
#include "service/grpc/server_call.h"

namespace simile::service {

// A ProgressCall of any method as the transport sees it. Holds at most one message behind the
// message that is being sent. Owns itself.
class ProgressExchange : public Exchange {
 public:
  // Reads the request. Errors: kRequestNotParsed
  absl::Status ParseRequest(google::protobuf::Message& request);
  // Sends the message; it replaces a message that still waits. Keeps the error when there is no
  // message. Not after End.
  void Write(absl::StatusOr<ReplyMessage> message);
  // Whether the last message could be made.
  absl::Status LastWrite();
  // Ends the call, after the message that waits. An error drops that message.
  void End(net::CallEnd end);

 protected:
  using Exchange::Exchange;

 private:
  // Reads the request and calls the handler, or ends the call with its error.
  virtual void RunHandler() = 0;
  virtual CallerKey caller() const = 0;
  // See ServerCall.
  virtual absl::Status Admit(std::uint64_t request_bytes) = 0;
  absl::Status BeginWith(net::ReceivedMessage request) override;
  void Release() override { delete this; }

  void Sent(bool ok) override;
  // Sends the message that waits, or the end, unless a message is being sent.
  void SendNext(std::unique_lock<std::mutex> lock);

  net::ReceivedMessage request_;

  std::mutex mutex_;  // guards the members below
  bool writing_ = false;
  bool broken_ = false;   // the caller is gone
  ReplyMessage waiting_;  // behind the message that is being sent; null for none
  absl::Status last_write_;
  std::optional<net::CallEnd> end_;
};

// A row of the table: a method that answers a request by messages, `handle(call, request)`.
template <class Request, class Message, class HandleCall>
class ProgressMethod final : public Method {
 public:
  ProgressMethod(RpcEnvironment& environment, const MethodRow& row, HandleCall handle)
      : Method(environment, row, Type::kServerStream), handle_(std::move(handle)) {}

 private:
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override {
    return *new CallExchange(*this, stream, std::move(head));  // destroys itself
  }

  // The call as its handler sees it.
  class Arrived final : public ServerCall<ProgressCall<Message>> {
   public:
    Arrived(const Method& method, ProgressExchange& exchange)
        : ServerCall<ProgressCall<Message>>(
              method.environment(), CallRecord(method, exchange.head()), exchange.cancelled()),
          exchange_(exchange) {
      this->SetDeadline(exchange.head().deadline);
    }
    void Run(HandleCall& handle) {
      const absl::Status parsed = Guarded([&] { return exchange_.ParseRequest(request_); });
      if (!parsed.ok()) return Finish(parsed);
      if constexpr (requires { request_.collection(); }) {
        static_cast<void>(Guarded([&] { this->Describe(request_.collection(), 0, 0); }));
      }
      handle(static_cast<ProgressCall<Message>&>(*this), std::as_const(request_));
    }
    void Send(Message message) override {
      absl::StatusOr<ReplyMessage> bytes;
      const absl::Status made = Guarded([&] {
        bytes = SerializeMessage(message, this->reply_limit());
        return bytes.status();
      });
      exchange_.Write(made.ok() ? std::move(bytes) : made);
    }
    void Finish(const absl::Status& status) override {
      const absl::Status end = status.ok() ? exchange_.LastWrite() : status;
      this->record().Ended(end);
      exchange_.End(MakeCallEnd(end, this->record()));
    }

   private:
    ProgressExchange& exchange_;
    Request request_;
  };

  class CallExchange final : public ProgressExchange {
   public:
    CallExchange(ProgressMethod& method, net::Http2Stream& stream, net::CallHead head)
        : ProgressExchange(method, stream, std::move(head)),
          method_(method),
          call_(method, *this) {}

   private:
    void RunHandler() override { call_.Run(method_.handle_); }
    void Reject(const absl::Status& status) override { call_.Finish(status); }
    CallerKey caller() const override { return call_.caller(); }
    absl::Status Admit(std::uint64_t request_bytes) override { return call_.Admit(request_bytes); }

    ProgressMethod& method_;
    Arrived call_;
  };

  HandleCall handle_;
};

template <class Request, class Message, class HandleCall>
std::unique_ptr<Method> Progress(RpcEnvironment& environment, const MethodRow& row,
                                 HandleCall handle) {
  return std::make_unique<ProgressMethod<Request, Message, HandleCall>>(environment, row,
                                                                        std::move(handle));
}

}  // namespace simile::service
