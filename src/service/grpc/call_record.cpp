#include "service/grpc/call_record.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>

#include "base/error_detail.h"
#include "google/rpc/status.pb.h"
#include "service/error_encoding.h"
#include "service/grpc/method.h"
#include "service/guarded.h"
#include "service/trace_parent.h"

namespace simile::service {
namespace {

constexpr char kAuthorizationKey[] = "authorization";
constexpr std::size_t kLoggedNameBytesMax = 128;  // no collection has a longer name
constexpr char kRetryAfterKey[] = "retry-after-ms";
constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";  // read by gRPC's own retries

// The value of a metadata entry of the caller; empty for none.
std::string_view Sent(const grpc::ServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) return {};
  return {entry->second.data(), entry->second.size()};
}

// The names that TLS has verified in the client's certificate.
std::vector<std::string> CertificateNames(const grpc::ServerContext& context) {
  std::vector<std::string> names;
  const auto of_transport = context.auth_context();
  if (of_transport == nullptr || !of_transport->IsPeerAuthenticated()) return names;
  for (const char* const property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    for (const grpc::string_ref& value : of_transport->FindPropertyValues(property)) {
      names.emplace_back(value.data(), value.size());
    }
  }
  return names;
}

grpc::Status FullStatus(const absl::Status& status, const CallRecord& record,
                        grpc::ServerContext& context) {
  context.AddTrailingMetadata(kRequestIdKey, std::string(record.request_id()));
  if (record.replaces_request_id()) {
    context.AddTrailingMetadata(kRequestIdReplacedKey, kRequestIdRule);
  }
  if (status.ok()) return {};
  if (const auto wait = base::RetryAfterOf(status)) {
    const std::string milliseconds = std::to_string(wait->count());
    context.AddTrailingMetadata(kRetryAfterKey, milliseconds);
    context.AddTrailingMetadata(kRetryPushbackKey, milliseconds);
  }
  const google::rpc::Status error = EncodeError(status, record.request_id());
  return {static_cast<grpc::StatusCode>(error.code()), error.message(), error.SerializeAsString()};
}

}  // namespace

CallRecord::CallRecord(const Method& method, const grpc::ServerContext& context)
    : method_(&method),
      arrived_at_(environment().clock.Now()),
      sent_request_id_(Sent(context, kRequestIdKey)),
      trace_parent_(Sent(context, kTraceParentKey)) {
  std::string peer = context.peer();
  const auto certificate_names = [&] { return CertificateNames(context); };
  admission_ = environment().access.Admit(
      this->method(), method.row().role,
      {Sent(context, kAuthorizationKey), context.client_metadata().count(kAuthorizationKey) > 1,
       certificate_names},
      identity_);
  caller_ = identity_.principal ? CallerKeyOfName(identity_.principal->name)
                                : CallerKeyOf(peer, environment().limits.ipv6_peer_bits);
  may_change_ = method.row().role >= Role::kWrite;
  if (may_change_ || environment().log_requests) peer_ = std::move(peer);
  if (IsUsableRequestId(sent_request_id_)) return;
  own_request_id_ = environment().request_ids.Next();
  replaces_request_id_ = !sent_request_id_.empty();
}

RpcEnvironment& CallRecord::environment() const { return method_->environment(); }

std::string_view CallRecord::method() const { return method_->name(); }

void CallRecord::Describe(std::string_view collection, std::size_t queries, std::uint32_t k) {
  collection_ = collection.substr(0, kLoggedNameBytesMax);
  queries_ = queries;
  k_ = k;
}

CallRecord CallRecord::OfMessage(std::uint64_t number) const {
  CallRecord record = *this;
  record.arrived_at_ = environment().clock.Now();
  record.admission_ =
      environment().access.AdmitAgain(method(), method_->row().role, record.identity_);
  if (record.identity_.principal) {
    record.caller_ = CallerKeyOfName(record.identity_.principal->name);  // may be another by now
  }
  record.own_request_id_ = fmt::format("{}/{}", request_id(), number);
  return record;
}

void CallRecord::Ended(const absl::Status& status) const noexcept {
  if (method_->metric() == nullptr) return;
  static_cast<void>(Guarded([&] { CountAndLog(status); }));
}

void CallRecord::CountAndLog(const absl::Status& status) const {
  const Clock::Duration duration = environment().clock.Now() - arrived_at_;
  const absl::StatusCode sent_code =
      status.ok() ? status.code() : base::InfoOf(base::ReasonOf(status)).code;
  method_->metric()->Record(sent_code, duration);
  // As the alert takes these off the failed calls, only of the methods that it looks at.
  if (!status.ok() && base::ReasonOf(status) == base::ErrorReason::kCallerLimit &&
      (method().starts_with("simile.v1.SearchService/") ||
       method().starts_with("simile.v1.LookupService/"))) {
    environment().metrics.CountRejected(observe::Rejection::kCallerLimit);
  }
  const bool gets_line = status.ok() ? environment().log_requests
                                     : environment().failure_lines.Admits(base::ReasonOf(status));
  if (gets_line) Log(status, sent_code, duration);
}

void CallRecord::Log(const absl::Status& status, absl::StatusCode sent_code,
                     Clock::Duration duration) const {
  std::vector<observe::LogField> fields = {
      {"request_id", request_id()}, {"rpc", method()}, {"duration_us", Microseconds(duration)}};
  if (!collection_.empty()) fields.emplace_back("collection", collection_);
  if (queries_ > 0) {
    fields.emplace_back("queries", queries_);
    fields.emplace_back("k", k_);
  }
  if (identity_.principal) fields.emplace_back("principal", identity_.principal->name);
  if (!peer_.empty()) fields.emplace_back("peer", peer_);
  if (replaces_request_id_) {
    fields.emplace_back("sent_request_id", sent_request_id_.substr(0, kRequestIdBytesMax));
  }
  const auto trace = ParseTraceParent(trace_parent_);
  if (trace) {
    fields.emplace_back("trace_id", trace->trace_id);
    fields.emplace_back("parent_span_id", trace->parent_span_id);
  }
  if (status.ok()) {
    return environment().log.Write(observe::LogLevel::kInfo, "request served", fields);
  }
  const std::string code = absl::StatusCodeToString(sent_code);
  const std::string message(status.message());
  fields.emplace_back("code", code);
  fields.emplace_back("reason", base::InfoOf(base::ReasonOf(status)).name);
  fields.emplace_back("error", message);
  environment().log.Write(
      IsServerFault(status) ? observe::LogLevel::kError : observe::LogLevel::kWarning,
      "request failed", fields);
}

std::optional<Clock::TimePoint> DeadlineOf(const RpcEnvironment& environment,
                                           const grpc::ServerContext& context,
                                           Clock::TimePoint arrived_at) {
  const gpr_timespec wall = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_REALTIME);
  if (gpr_time_cmp(wall, gpr_inf_future(GPR_CLOCK_REALTIME)) == 0) return std::nullopt;
  // A deadline centuries away must not overflow a sum of nanoseconds; no call takes a day.
  constexpr std::chrono::seconds kLongest = std::chrono::hours{24};
  const Clock::Duration now = environment.clock.WallNow().time_since_epoch();
  if (std::chrono::seconds(wall.tv_sec) - kLongest >
      std::chrono::duration_cast<std::chrono::seconds>(now)) {
    return arrived_at + kLongest;
  }
  return arrived_at +
         (std::chrono::seconds(wall.tv_sec) + std::chrono::nanoseconds(wall.tv_nsec) - now);
}

grpc::Status OutOfMemoryEnd() noexcept {
  // As short as a string may be that needs no memory of its own.
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "out of memory"};
}

grpc::Status GrpcStatus(const absl::Status& status, const CallRecord& record,
                        grpc::ServerContext& context) noexcept {
  grpc::Status end = status.ok() ? grpc::Status() : OutOfMemoryEnd();
  static_cast<void>(Guarded([&] { end = FullStatus(status, record, context); }));
  return end;
}

}  // namespace simile::service
