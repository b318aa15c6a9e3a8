#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/calls/call.h"
#include "service/changes/change_audit.h"
#include "service/grpc/call_record.h"
#include "service/grpc/messages.h"

namespace simile::service {

// What the calls of all kinds have in common.
//   Interface  Call, or ProgressCall of a message
template <class Interface>
class ServerCall : public Interface {
 public:
  ServerCall(RpcEnvironment& environment, CallRecord record, std::stop_token cancelled)
      : environment_(environment),
        record_(std::move(record)),
        access_(record_.identity()),
        cancelled_(std::move(cancelled)) {
    reply_limit_.bytes_max = environment.limits.reply_bytes_default;
    reply_limit_.unsent = environment.unsent_replies.get();
    reply_limit_.caller = record_.caller();
    reply_limit_.clock = &environment.clock;
  }

  std::string_view method() const override { return record_.method(); }
  std::string_view request_id() const override { return record_.request_id(); }
  Clock::TimePoint arrived_at() const override { return record_.arrived_at(); }
  CallerKey caller() const override { return record_.caller(); }
  CallAccess& access() override { return access_; }
  std::string_view peer() const override { return record_.peer(); }
  std::optional<Clock::TimePoint> deadline() const override { return reply_limit_.deadline; }
  std::stop_token cancelled() const override { return cancelled_; }
  // Whether the caller may make the call, and send this many bytes.
  // Errors: UNAUTHENTICATED, PERMISSION_DENIED, CALLER_LIMIT.
  absl::Status Admit(std::uint64_t request_bytes) {
    absl::Status admitted =
        record_.admission().ok() ? access_.HoldBytes(request_bytes) : record_.admission();
    // The peer is known for methods that change something: their refusals are audited.
    if (!admitted.ok() && !record_.peer().empty())
      AuditRefusal(environment_.audit, *this, admitted);
    return admitted;
  }
  void Describe(std::string_view collection, std::size_t queries, std::uint32_t k) override {
    if (environment_.log_requests) record_.Describe(collection, queries, k);
  }
  void SetReplyLimit(std::uint64_t bytes_max, std::string_view remedy) override {
    reply_limit_.bytes_max = bytes_max;
    reply_limit_.remedy = remedy;
  }

 protected:
  RpcEnvironment& environment() const { return environment_; }
  const CallRecord& record() const { return record_; }
  const ReplyLimit& reply_limit() const { return reply_limit_; }
  // The bytes of the response that `make` returns, unless the caller is gone. Counts a refusal.
  template <class Make>
  absl::StatusOr<ReplyMessage> Serialize(const Make& make) const {
    absl::StatusOr<ReplyMessage> made;
    const absl::Status status = Guarded([&]() -> absl::Status {
      if (cancelled_.stop_requested()) return CallerGoneError();
      made = make();
      CountRefusal(environment_.metrics, made.status());
      return made.status();
    });
    return status.ok() ? std::move(made) : status;
  }
  void SetDeadline(std::optional<Clock::TimePoint> deadline) { reply_limit_.deadline = deadline; }

 private:
  RpcEnvironment& environment_;
  CallRecord record_;
  CallAccess access_;
  const std::stop_token cancelled_;
  ReplyLimit reply_limit_;
};

}  // namespace simile::service
