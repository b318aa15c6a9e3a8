#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "service/call.h"
#include "service/rpc_environment.h"

namespace simile::service {

// The one reactor of all unary calls: what gRPC sees of a Call. Gives it a request id, counts,
// times and logs it, and maps its status. Deletes itself when gRPC has let go of the call, which is
// not before Finish.
class UnaryReactor final : public grpc::ServerUnaryReactor, public Call {
 public:
  // Starts a call: hands it to `handle`, or answers it with kUnavailable when the server is
  // stopping.
  //   method  "simile.v1.SearchService/Search"; static storage
  template <class Handle>
  static grpc::ServerUnaryReactor* Start(RpcEnvironment& environment,
                                         grpc::CallbackServerContext& context,
                                         std::string_view method, Handle&& handle) {
    auto* const reactor = new UnaryReactor(environment, context, method);
    if (reactor->Enter()) handle(static_cast<Call&>(*reactor));
    return reactor;
  }

  std::string_view request_id() const override { return request_id_; }
  Clock::TimePoint arrived_at() const override { return arrived_at_; }
  std::optional<Clock::TimePoint> deadline() const override;
  std::shared_ptr<const std::atomic<bool>> cancelled() const override { return cancelled_; }
  void SetRetryAfter(std::chrono::milliseconds wait) override;
  void Finish(const absl::Status& status) override;

 private:
  UnaryReactor(RpcEnvironment& environment, grpc::CallbackServerContext& context,
               std::string_view method);

  bool Enter();
  void Record(const absl::Status& status) const;
  void OnCancel() override { cancelled_->store(true, std::memory_order_relaxed); }
  void OnDone() override;

  RpcEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  const std::string_view method_;
  const Clock::TimePoint arrived_at_;
  const std::string request_id_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  bool entered_ = false;
};

}  // namespace simile::service
