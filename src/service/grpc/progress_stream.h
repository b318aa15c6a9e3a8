#pragma once

#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "service/grpc/server_call.h"
#include "service/guarded.h"

namespace simile::service {

// gRPC's side of the ProgressCalls of all methods that stream their progress: holds at most one
// message that waits behind the one being sent. Safe to use from any thread.
class ProgressWriter : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 protected:
  // Sends the message, in place of one that still waits, or keeps why there is none. Not after End.
  void Write(absl::StatusOr<grpc::ByteBuffer> message);
  // Whether the last message could be made.
  absl::Status LastWrite();
  // Ends the call, after the message that waits unless it ends with an error.
  void End(grpc::Status status);

 private:
  void OnWriteDone(bool sent) final;

  std::mutex mutex_;  // guards the members below
  bool writing_ = false;
  bool broken_ = false;       // the caller is gone
  grpc::ByteBuffer current_;  // being sent
  std::optional<grpc::ByteBuffer> waiting_;
  absl::Status last_write_;
  std::optional<grpc::Status> end_;
};

// A call with a request, answered by messages. Deletes itself in OnDone, which gRPC calls after
// Finish.
template <class Request, class Message>
class ProgressStream final : public ProgressWriter, public ServerCall<ProgressCall<Message>> {
  using Base = ServerCall<ProgressCall<Message>>;

 public:
  // Starts a call: `handle(call, request)`, or an error as UnaryCall::Start.
  //   method  "simile.v1.CollectionService/LoadCollection"; static storage
  template <class Handle>
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(RpcEnvironment& environment,
                                                           grpc::CallbackServerContext& context,
                                                           std::string_view method,
                                                           const grpc::ByteBuffer& request,
                                                           Handle&& handle) {
    auto* const call = new ProgressStream(environment, context, method);
    const absl::Status begun = call->Begin(request, call->request_);
    if (begun.ok()) {
      handle(static_cast<ProgressCall<Message>&>(*call), call->request_);
    } else {
      call->Finish(begun);
    }
    return call;
  }

  void Send(Message message) override {
    absl::StatusOr<grpc::ByteBuffer> bytes;
    const absl::Status made = Guarded([&] {
      bytes = SerializeMessage(message, this->reply_limit());
      return bytes.status();
    });
    Write(made.ok() ? std::move(bytes) : made);
  }
  void Finish(const absl::Status& status) override {
    const absl::Status end = status.ok() ? LastWrite() : status;
    this->record().Ended(end);
    End(GrpcStatus(end, this->record(), context_));
  }

 private:
  ProgressStream(RpcEnvironment& environment, grpc::CallbackServerContext& context,
                 std::string_view method)
      : Base(environment, CallRecord(environment, context, method),
             std::make_shared<std::atomic<bool>>(false)),
        context_(context) {
    this->SetDeadline(DeadlineOf(environment, context, this->arrived_at()));
  }

  void OnCancel() override { this->Cancel(); }
  void OnDone() override {
    RpcEnvironment& environment = this->environment();
    const bool was_inside = this->entered();
    delete this;
    if (was_inside) environment.Leave();
  }

  grpc::CallbackServerContext& context_;
  Request request_;
};

}  // namespace simile::service
