#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "net/rpc_call.h"
#include "service/grpc/method.h"

namespace simile::service {

class Method;

// Who makes a call, and what is written about it: its line in the log and its count in the metrics.
// Borrows the text of the call's metadata.
class CallRecord {
 public:
  // Records a call that arrives now: the caller's request id or a new one, the caller's trace, and
  // whether the caller may make the call.
  CallRecord(const Method& method, const net::CallHead& head);
  // Makes the record of the message `number` of this stream, which arrives now: its request id gets
  // `/number`.
  CallRecord OfMessage(std::uint64_t number) const;

  std::string_view method() const;
  std::string_view request_id() const {
    return own_request_id_.empty() ? sent_request_id_ : std::string_view(own_request_id_);
  }
  // Whether the caller sent a request id that cannot be used.
  bool replaces_request_id() const { return replaces_request_id_; }
  Clock::TimePoint arrived_at() const { return arrived_at_; }
  // The key of the caller's shares, from its principal, or else from its address.
  CallerKey caller() const { return caller_; }
  // Whether the caller may make this call, and who the caller is.
  const absl::Status& admission() const { return admission_; }
  const Caller& identity() const { return identity_; }
  // The caller's address, for methods that change something; empty for other methods.
  std::string_view peer() const { return may_change_ ? std::string_view(peer_) : ""; }
  // Keeps what the request asks for, for the log; see AnyCall.
  void Describe(std::string_view collection, std::size_t queries, std::uint32_t k);

  // Counts the end of the call, and logs it unless too many fail alike (FailureLines). Does not
  // throw: what has no memory is left out.
  void Ended(const absl::Status& status) const noexcept;

 private:
  void CountAndLog(const absl::Status& status) const;
  void Log(const absl::Status& status, absl::StatusCode sent_code, Clock::Duration duration) const;

  RpcEnvironment& environment() const;

  const Method* method_;
  Clock::TimePoint arrived_at_;
  CallerKey caller_;
  Caller identity_;
  absl::Status admission_;
  std::string peer_;         // empty where it is not logged
  bool may_change_ = false;  // whether the method changes something
  std::string collection_;   // named by the request; empty where it is not logged
  std::size_t queries_ = 0;
  std::uint32_t k_ = 0;
  std::string_view sent_request_id_;  // the caller's; empty when it sent none
  std::string own_request_id_;        // made here; empty when the caller's is used
  bool replaces_request_id_ = false;
  std::string_view trace_parent_;  // as the caller sent it
};

// Makes the end of a call as it is sent, with its trailing metadata: the request id, whether it
// replaces the caller's, and when to try again. Without memory for an error: OUT_OF_MEMORY without
// details.
net::CallEnd MakeCallEnd(const absl::Status& status, const CallRecord& record) noexcept;

}  // namespace simile::service
