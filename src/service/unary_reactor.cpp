#include "service/unary_reactor.h"

#include "service/status_mapping.h"

namespace simile::service {
namespace {

constexpr char kRetryAfterKey[] = "retry-after-ms";

std::string RequestIdOf(const grpc::CallbackServerContext& context, RequestIds& request_ids) {
  const auto& metadata = context.client_metadata();
  const auto sent = metadata.find(kRequestIdKey);
  if (sent != metadata.end()) {
    const std::string_view id(sent->second.data(), sent->second.size());
    if (IsUsableRequestId(id)) return std::string(id);
  }
  return request_ids.Next();
}

}  // namespace

UnaryReactor::UnaryReactor(RpcEnvironment& environment, grpc::CallbackServerContext& context,
                           std::string_view method)
    : environment_(environment),
      context_(context),
      method_(method),
      arrived_at_(environment.clock.Now()),
      request_id_(RequestIdOf(context, environment.request_ids)),
      cancelled_(std::make_shared<std::atomic<bool>>(false)) {}

bool UnaryReactor::Enter() {
  entered_ = environment_.gate.Enter();
  if (entered_) {
    environment_.metrics.AddRequestsInFlight(1);
  } else {
    environment_.metrics.CountRejected(observe::Rejection::kDraining);
    Finish(absl::UnavailableError("the server is stopping; retry on another server, or later"));
  }
  return entered_;
}

std::optional<Clock::TimePoint> UnaryReactor::deadline() const {
  const std::chrono::system_clock::time_point wall = context_.deadline();
  if (wall == std::chrono::system_clock::time_point::max()) return std::nullopt;
  // A deadline years away must not overflow the sum; no call takes a day.
  constexpr std::chrono::hours kLongest{24};
  const auto left = wall - environment_.clock.WallNow();
  return arrived_at_ + (left < kLongest ? std::chrono::duration_cast<Clock::Duration>(left)
                                        : Clock::Duration(kLongest));
}

void UnaryReactor::SetRetryAfter(std::chrono::milliseconds wait) {
  context_.AddTrailingMetadata(kRetryAfterKey, std::to_string(wait.count()));
}

void UnaryReactor::Finish(const absl::Status& status) {
  Record(status);
  context_.AddTrailingMetadata(kRequestIdKey, request_id_);
  // The codes of absl and gRPC have the same numbers.
  grpc::ServerUnaryReactor::Finish(status.ok()
                                       ? grpc::Status::OK
                                       : grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                                                      MessageForCaller(status, request_id_)));
}

void UnaryReactor::Record(const absl::Status& status) const {
  const Clock::Duration duration = environment_.clock.Now() - arrived_at_;
  const std::string code = absl::StatusCodeToString(status.code());
  environment_.metrics.RecordCall(method_, code, duration);
  if (status.ok()) {
    if (environment_.log_requests) {
      environment_.log.Info(
          "request served",
          {{"request_id", request_id_}, {"rpc", method_}, {"duration_us", Microseconds(duration)}});
    }
    return;
  }
  const std::string message(status.message());
  const observe::Logger::Fields fields = {{"request_id", request_id_},
                                          {"rpc", method_},
                                          {"code", code},
                                          {"duration_us", Microseconds(duration)},
                                          {"error", message}};
  if (IsInternal(status.code())) {
    environment_.log.Error("request failed", fields);
  } else {
    environment_.log.Warn("request failed", fields);
  }
}

void UnaryReactor::OnDone() {
  RpcEnvironment& environment = environment_;
  const bool entered = entered_;
  delete this;
  if (entered) {
    environment.metrics.AddRequestsInFlight(-1);
    environment.gate.Leave();
  }
}

}  // namespace simile::service
