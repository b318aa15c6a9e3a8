#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "service/call.h"
#include "service/grpc/call_record.h"
#include "service/grpc/messages.h"
#include "service/guarded.h"

namespace simile::service {

// What the calls of all kinds have in common.
//   Interface  Call, or ProgressCall of a message
template <class Interface>
class ServerCall : public Interface {
 public:
  using Flag = std::shared_ptr<std::atomic<bool>>;

  ServerCall(RpcEnvironment& environment, CallRecord record, Flag cancelled)
      : environment_(environment), record_(std::move(record)), cancelled_(std::move(cancelled)) {
    reply_limit_.bytes_max = environment.limits.reply_bytes_default;
  }

  std::string_view method() const override { return record_.method(); }
  std::string_view request_id() const override { return record_.request_id(); }
  Clock::TimePoint arrived_at() const override { return record_.arrived_at(); }
  std::optional<Clock::TimePoint> deadline() const override { return deadline_; }
  std::shared_ptr<const std::atomic<bool>> cancelled() const override { return cancelled_; }
  void SetReplyLimit(std::uint64_t bytes_max, std::string_view remedy) override {
    reply_limit_ = {bytes_max, remedy};
  }

 protected:
  // Begins a call of its own: enters the gate and reads the request.
  // Errors: kStopping after the server began to stop; kRequestNotParsed.
  absl::Status Begin(const grpc::ByteBuffer& bytes, google::protobuf::Message& request) {
    const absl::Status admitted = environment_.Enter();
    entered_ = admitted.ok();
    if (!entered_) return admitted;
    // gRPC shows the bytes as const, but keeps them for this call alone.
    return Guarded([&] { return ParseMessage(const_cast<grpc::ByteBuffer&>(bytes), request); });
  }
  bool entered() const { return entered_; }

  RpcEnvironment& environment() const { return environment_; }
  const CallRecord& record() const { return record_; }
  const ReplyLimit& reply_limit() const { return reply_limit_; }
  void SetDeadline(std::optional<Clock::TimePoint> deadline) { deadline_ = deadline; }
  void Cancel() { cancelled_->store(true, std::memory_order_relaxed); }

 private:
  RpcEnvironment& environment_;
  const CallRecord record_;
  std::optional<Clock::TimePoint> deadline_;
  const Flag cancelled_;
  ReplyLimit reply_limit_;
  bool entered_ = false;
};

}  // namespace simile::service
