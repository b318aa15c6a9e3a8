#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include <absl/status/status.h>

#include "simile/clock.h"

namespace simile::service {

// One RPC in progress as its handler sees it, without gRPC (unary_reactor.h implements it). The
// call, its request and its response live until Finish, which the handler calls exactly once, from
// any thread. The other functions may be called from any thread before that.
class Call {
 public:
  virtual ~Call() = default;

  // The caller's x-request-id, or one made by the server.
  virtual std::string_view request_id() const = 0;
  virtual Clock::TimePoint arrived_at() const = 0;
  // The caller's deadline; nothing when it set none.
  virtual std::optional<Clock::TimePoint> deadline() const = 0;
  // Becomes true when the caller cancels or disconnects. May be read after Finish.
  virtual std::shared_ptr<const std::atomic<bool>> cancelled() const = 0;

  // Adds to the error that follows how long the caller should wait before it retries.
  virtual void SetRetryAfter(std::chrono::milliseconds wait) = 0;
  // Sends the response, or the error. Call, request and response must not be used afterwards.
  virtual void Finish(const absl::Status& status) = 0;
};

}  // namespace simile::service
