#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <absl/status/statusor.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "service/grpc/method.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"

namespace simile::service {

class ProgressMethod;

// The ProgressCalls of all methods that stream their progress as gRPC sees them: asks for one, and
// holds at most one message that waits behind the one being sent. Owns itself until gRPC is done
// with the call.
class ProgressExchange : public net::OpenCall {
 public:
  ProgressExchange(const ProgressExchange&) = delete;
  ProgressExchange& operator=(const ProgressExchange&) = delete;

 protected:
  // Asks gRPC for a call. `method` asks for the next one when it has arrived.
  ProgressExchange(ProgressMethod& method, MethodService& service, int index,
                   net::IoThread& thread);

  // The call has arrived: makes what its handler sees. May throw.
  virtual void Arrive() = 0;
  // Reads the request and calls the handler, or ends the call with its error.
  virtual void Run() = 0;
  virtual void Refuse(const absl::Status& status) = 0;
  virtual CallerKey caller() const = 0;

  const ProgressMethod& method() const { return method_; }
  grpc::ServerContext& context() { return context_; }
  grpc::ByteBuffer& request() { return request_; }
  std::stop_token cancelled() const { return cancelled_.get_token(); }

  // Sends the message, in place of one that still waits, or keeps why there is none. Not after End.
  void Write(absl::StatusOr<grpc::ByteBuffer> message);
  // Whether the last message could be made.
  absl::Status LastWrite();
  // Ends the call, after the message that waits unless it ends with an error.
  void End(grpc::Status status);

 private:
  void OnArrived(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  void Cut() override { context_.TryCancel(); }
  // At arrival; without memory for it then, at the end.
  void AskForNext();
  absl::Status Begin();
  // These two start an operation of gRPC, and when its caller must have taken it.
  void WriteCurrent();
  void Finish(const grpc::Status& status);
  // One of the two last events.
  void EndOne();

  ProgressMethod& method_;
  MethodService& service_;
  const int index_;
  net::IoThread& thread_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  net::IoEventOf<ProgressExchange> arrived_event_{*this, &ProgressExchange::OnArrived};
  net::IoEventOf<ProgressExchange> written_event_{*this, &ProgressExchange::OnWritten};
  net::IoEventOf<ProgressExchange> finished_event_{*this, &ProgressExchange::OnFinished};
  net::IoEventOf<ProgressExchange> done_event_{*this, &ProgressExchange::OnDone};
  int ends_ = 0;
  bool asked_for_next_ = false;
  std::stop_source cancelled_;

  std::mutex mutex_;  // guards the members below
  bool writing_ = false;
  bool broken_ = false;       // the caller is gone
  grpc::ByteBuffer current_;  // being sent
  std::optional<grpc::ByteBuffer> waiting_;
  absl::Status last_write_;
  std::optional<grpc::Status> end_;
};

// A method that answers a request by messages.
class ProgressMethod : public Method {
 public:
  ProgressMethod(RpcEnvironment& environment, const MethodRow& row)
      : Method(environment, row, Type::SERVER_STREAMING) {}

  void TakeCalls(MethodService& service, int index, net::IoThread& thread) override {
    for (std::size_t i = 0; i < row().posted; ++i) Ask(service, index, thread);
  }
  // Asks gRPC for one call.
  virtual void Ask(MethodService& service, int index, net::IoThread& thread) = 0;
};

// A row of the table: `handle(call, request)`.
template <class Request, class Message, class HandleCall>
class ProgressMethodOf final : public ProgressMethod {
 public:
  ProgressMethodOf(RpcEnvironment& environment, const MethodRow& row, HandleCall handle)
      : ProgressMethod(environment, row), handle_(std::move(handle)) {}

  void Ask(MethodService& service, int index, net::IoThread& thread) override {
    new Exchange(*this, service, index, thread);  // owns itself
  }

 private:
  class Exchange;

  // The call as its handler sees it.
  class Arrived final : public ServerCall<ProgressCall<Message>> {
   public:
    Arrived(RpcEnvironment& environment, CallRecord record, Exchange& exchange)
        : ServerCall<ProgressCall<Message>>(environment, std::move(record), exchange.cancelled()),
          exchange_(exchange) {
      this->SetDeadline(DeadlineOf(environment, exchange.context(), this->arrived_at()));
    }
    void Run(HandleCall& handle) {
      const absl::Status parsed =
          Guarded([&] { return ParseMessage(exchange_.request(), request_); });
      if (!parsed.ok()) return Finish(parsed);
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
    Exchange& exchange_;
    Request request_;
  };

  class Exchange final : public ProgressExchange {
   public:
    Exchange(ProgressMethodOf& method, MethodService& service, int index, net::IoThread& thread)
        : ProgressExchange(method, service, index, thread), method_(method) {}

    using ProgressExchange::cancelled;
    using ProgressExchange::context;
    using ProgressExchange::End;
    using ProgressExchange::LastWrite;
    using ProgressExchange::request;
    using ProgressExchange::Write;

   private:
    void Arrive() override {
      RpcEnvironment& environment = method_.environment();
      call_.emplace(environment, CallRecord(environment, context(), method_.identity()), *this);
    }
    void Run() override { call_->Run(method_.handle_); }
    void Refuse(const absl::Status& status) override { call_->Finish(status); }
    CallerKey caller() const override { return call_->caller(); }

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
