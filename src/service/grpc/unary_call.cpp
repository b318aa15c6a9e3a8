#include "service/grpc/unary_call.h"

namespace simile::service {

UnaryCall::UnaryCall(RpcEnvironment& environment, grpc::CallbackServerContext& context,
                     std::string_view method, grpc::ByteBuffer& response)
    : ServerCall<Call>(environment, CallRecord(environment, context, method),
                       std::make_shared<std::atomic<bool>>(false)),
      context_(context),
      response_(response) {
  SetDeadline(DeadlineOf(environment, context, arrived_at()));
}

void UnaryCall::Finish(const absl::Status& status) {
  absl::Status end = status;
  if (end.ok()) {
    end = Guarded([this] {
      auto bytes = SerializeMessage(*answer_, reply_limit());
      if (bytes.ok()) response_.Swap(&*bytes);
      return bytes.status();
    });
  }
  record().Ended(end);
  grpc::ServerUnaryReactor::Finish(GrpcStatus(end, record(), context_));
}

void UnaryCall::OnDone() {
  RpcEnvironment& environment = this->environment();
  const bool was_inside = entered();
  delete this;
  if (was_inside) environment.Leave();
}

}  // namespace simile::service
