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

// gRPC's side of a Call, for all unary methods. Gives the call a request id; counts, times and logs
// it; maps its status. Deletes itself in OnDone, which gRPC calls after Finish.
class UnaryReactor final : public grpc::ServerUnaryReactor, public Call {
 public:
  // Starts a call: passes it to `handle`, or finishes it with kUnavailable when the gate is closed.
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
