#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "service/rpc_environment.h"
#include "service/trace_parent.h"

namespace simile::service {

// Who a call is, and what is written about it: its line in the log and its count in the metrics.
class CallRecord {
 public:
  // Of a call that arrives now: the caller's request id or a new one, and the caller's trace.
  //   method  "simile.v1.SearchService/Search"; static storage
  CallRecord(RpcEnvironment& environment, const grpc::CallbackServerContext& context,
             std::string_view method);
  // Of the message `number` of this stream, which arrives now: the request id gets `/number`.
  CallRecord OfMessage(std::uint64_t number) const;

  std::string_view method() const { return method_; }
  const std::string& request_id() const { return request_id_; }
  // Whether the caller sent another one, which cannot be used.
  bool replaces_request_id() const { return !sent_request_id_.empty(); }
  Clock::TimePoint arrived_at() const { return arrived_at_; }

  // Logs and counts the end of the call.
  void Ended(const absl::Status& status) const;

 private:
  RpcEnvironment* environment_;
  std::string_view method_;
  Clock::TimePoint arrived_at_;
  std::string request_id_;
  std::string sent_request_id_;  // by the caller, its first bytes, where request_id_ replaces it
  std::optional<TraceParent> trace_;
};

// The deadline that the caller set; nothing for none.
std::optional<Clock::TimePoint> DeadlineOf(const RpcEnvironment& environment,
                                           const grpc::CallbackServerContext& context,
                                           Clock::TimePoint arrived_at);

// The end of a call as gRPC sends it; adds its trailing metadata: the request id, whether it
// replaces the caller's, and when to try again.
grpc::Status GrpcStatus(const absl::Status& status, const CallRecord& record,
                        grpc::CallbackServerContext& context);

}  // namespace simile::service
