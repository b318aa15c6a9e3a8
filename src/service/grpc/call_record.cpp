#include "service/grpc/call_record.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "google/rpc/status.pb.h"
#include "service/calls/call.h"
#include "service/calls/call_ids.h"
#include "service/grpc/method.h"
#include "service/replies/error_encoding.h"

namespace simile::service {
namespace {

constexpr char kAuthorizationKey[] = "authorization";
constexpr std::size_t kLoggedNameBytesMax = 128;  // no collection has a longer name
constexpr char kRetryAfterKey[] = "retry-after-ms";
constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";  // read by gRPC's own retries

// Takes no memory.
net::CallEnd OutOfMemoryEnd() noexcept {
  net::CallEnd end;
  end.code = absl::StatusCode::kResourceExhausted;
  end.message = "out of memory";  // short enough for no allocation
  return end;
}

net::CallEnd MakeFullEnd(const absl::Status& status, const CallRecord& record) {
  net::CallEnd end;
  end.trailing.emplace_back(kRequestIdKey, record.request_id());
  if (record.replaces_request_id()) {
    end.trailing.emplace_back(kRequestIdReplacedKey, kRequestIdRule);
  }
  if (status.ok()) return end;
  if (const auto wait = base::ReadRetryAfter(status)) {
    const std::string milliseconds = std::to_string(wait->count());
    end.trailing.emplace_back(kRetryAfterKey, milliseconds);
    end.trailing.emplace_back(kRetryPushbackKey, milliseconds);
  }
  google::rpc::Status error = EncodeError(status, record.request_id());
  end.code = static_cast<absl::StatusCode>(error.code());
  end.details = error.SerializeAsString();
  end.message = std::move(*error.mutable_message());
  return end;
}

}  // namespace

CallRecord::CallRecord(const Method& method, const net::CallHead& head)
    : method_(&method),
      arrived_at_(environment().clock.Now()),
      sent_request_id_(net::FindValue(head.metadata, kRequestIdKey)),
      trace_parent_(net::FindValue(head.metadata, kTraceParentKey)) {
  const net::Peer& peer = *head.peer;
  admission_ = environment().access.Admit(
      this->method(), method.row().role,
      {net::FindValue(head.metadata, kAuthorizationKey),
       std::ranges::count(head.metadata, std::string_view(kAuthorizationKey),
                          &net::Metadata::value_type::first) > 1,
       [&peer] { return peer.certificate_names; }},
      identity_);
  caller_ = identity_.principal ? HashPrincipalName(identity_.principal->name) : HashPeer(peer.key);
  may_change_ = method.row().role >= Role::kWrite;
  if (may_change_ || environment().log_requests) peer_ = peer.address;
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
    record.caller_ = HashPrincipalName(record.identity_.principal->name);  // may be another by now
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
  // Only for the methods that the alert watches, because it subtracts these from the failed calls.
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

net::CallEnd MakeCallEnd(const absl::Status& status, const CallRecord& record) noexcept {
  net::CallEnd end = status.ok() ? net::CallEnd() : OutOfMemoryEnd();
  static_cast<void>(Guarded([&] { end = MakeFullEnd(status, record); }));
  return end;
}

}  // namespace simile::service
