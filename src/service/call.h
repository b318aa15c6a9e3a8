#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include <absl/status/status.h>

#include "simile/clock.h"

namespace simile::service {

// One RPC under way, as its handler sees it; gRPC stays behind it (unary_reactor.h). Lives until
// Finish, which its handler calls exactly once, from any thread; with it live the request and the
// response. Everything else may be called from any thread before that.
class Call {
 public:
  virtual ~Call() = default;

  // The caller's x-request-id, or one made here.
  virtual std::string_view request_id() const = 0;
  virtual Clock::TimePoint arrived_at() const = 0;
  // When the caller gives up; nothing when it never does.
  virtual std::optional<Clock::TimePoint> deadline() const = 0;
  // Becomes true when the caller has gone. May be read after the call's end.
  virtual std::shared_ptr<const std::atomic<bool>> cancelled() const = 0;

  // Tells the caller, with the failure that follows, when trying again may help.
  virtual void SetRetryAfter(std::chrono::milliseconds wait) = 0;
  // Answers with the response as it stands, or with the error. The call, the request and the
  // response must not be touched afterwards.
  virtual void Finish(const absl::Status& status) = 0;
};

}  // namespace simile::service
