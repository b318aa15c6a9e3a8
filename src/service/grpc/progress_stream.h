#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <absl/status/statusor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/grpc/exchange.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"

namespace simile::service {

// The ProgressCalls of all methods that stream their progress as gRPC sees them: holds at most one
// message that waits behind the one being sent. Owns itself.
class ProgressExchange : public Exchange {
 public:
  // Reads the request. Errors: kRequestNotParsed
  absl::Status ParseRequest(google::protobuf::Message& request);
  // Sends the message, in place of one that still waits, or keeps why there is none. Not after End.
  void Write(absl::StatusOr<grpc::ByteBuffer> message);
  // Whether the last message could be made.
  absl::Status LastWrite();
  // Ends the call, after the message that waits unless it ends with an error.
  void End(grpc::Status status);

 protected:
  // Asks gRPC for a call.
  explicit ProgressExchange(Method& method);

 private:
  // Reads the request and calls the handler, or ends the call with its error.
  virtual void Run() = 0;
  virtual CallerKey caller() const = 0;
  // See ServerCall.
  virtual absl::Status Admit(std::uint64_t request_bytes) = 0;
  absl::Status Begin() override;
  void SendEnd(const grpc::Status& status) override;
  void Release() override { delete this; }

  void OnWritten(bool ok);
  // Begins the operation.
  void WriteCurrent();

  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  net::IoEventOf<ProgressExchange> written_event_{*this, &ProgressExchange::OnWritten};

  std::mutex mutex_;  // guards the members below
  bool writing_ = false;
  bool broken_ = false;       // the caller is gone
  grpc::ByteBuffer current_;  // being sent
  std::optional<grpc::ByteBuffer> waiting_;
  absl::Status last_write_;
  std::optional<grpc::Status> end_;
};

// A row of the table: a method that answers a request by messages, `handle(call, request)`.
template <class Request, class Message, class HandleCall>
class ProgressMethodOf final : public Method {
 public:
  ProgressMethodOf(RpcEnvironment& environment, const MethodRow& row, HandleCall handle)
      : Method(environment, row, Type::SERVER_STREAMING), handle_(std::move(handle)) {}

 private:
  void AskForCall() override { new CallExchange(*this); }  // owns itself

  // The call as its handler sees it.
  class Arrived final : public ServerCall<ProgressCall<Message>> {
   public:
    Arrived(const Method& method, ProgressExchange& exchange)
        : ServerCall<ProgressCall<Message>>(
              method.environment(), CallRecord(method, exchange.context()), exchange.cancelled()),
          exchange_(exchange) {
      this->SetDeadline(DeadlineOf(method.environment(), exchange.context(), this->arrived_at()));
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
      absl::StatusOr<grpc::ByteBuffer> bytes;
      const absl::Status made = Guarded([&] {
        bytes = SerializeMessage(message, this->reply_limit());
        return bytes.status();
      });
      exchange_.Write(made.ok() ? std::move(bytes) : made);
    }
    void Finish(const absl::Status& status) override {
      const absl::Status end = status.ok() ? exchange_.LastWrite() : status;
      this->record().Ended(end);
      exchange_.End(GrpcStatus(end, this->record(), exchange_.context()));
    }

   private:
    ProgressExchange& exchange_;
    Request request_;
  };

  class CallExchange final : public ProgressExchange {
   public:
    explicit CallExchange(ProgressMethodOf& method) : ProgressExchange(method), method_(method) {}

   private:
    void MakeCall() override { call_.emplace(method_, *this); }
    void Run() override { call_->Run(method_.handle_); }
    void Reject(const absl::Status& status) override { call_->Finish(status); }
    CallerKey caller() const override { return call_->caller(); }
    absl::Status Admit(std::uint64_t request_bytes) override { return call_->Admit(request_bytes); }

    ProgressMethodOf& method_;
    std::optional<Arrived> call_;
  };

  HandleCall handle_;
};

template <class Request, class Message, class HandleCall>
std::unique_ptr<Method> Progress(RpcEnvironment& environment, const MethodRow& row,
                                 HandleCall handle) {
  return std::make_unique<ProgressMethodOf<Request, Message, HandleCall>>(environment, row,
                                                                          std::move(handle));
}

}  // namespace simile::service
