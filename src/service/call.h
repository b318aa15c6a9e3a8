#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <absl/status/status.h>

#include "simile/clock.h"

namespace simile::service {

// One request in progress as its handler sees it, without gRPC: a call, or a message of a stream.
// The call, its request and its response live until Finish, which the handler calls exactly once,
// from any thread. The other functions may be called from any thread before that.
class Call {
 public:
  virtual ~Call() = default;

  // "simile.v1.SearchService/Search"; static storage.
  virtual std::string_view method() const = 0;
  // The caller's x-request-id, or one made by the server where the caller sent none that is usable.
  virtual std::string_view request_id() const = 0;
  virtual Clock::TimePoint arrived_at() const = 0;
  // The caller's deadline; nothing when it set none.
  virtual std::optional<Clock::TimePoint> deadline() const = 0;
  // Becomes true when the caller cancels or disconnects. May be read after Finish.
  virtual std::shared_ptr<const std::atomic<bool>> cancelled() const = 0;

  // The largest response, serialized bytes: Finish refuses a larger one (reply_size.h). Without
  // this limits.reply_bytes_default.
  //   remedy  what the caller can do, for the message; must outlive the call
  virtual void SetReplyLimit(std::uint64_t bytes_max, std::string_view remedy) = 0;

  // Sends the response, or the error with its reason, field and retry time (base/error_detail.h).
  // Call, request and response must not be used afterwards.
  virtual void Finish(const absl::Status& status) = 0;
};

// A call that reports progress: it is answered by several messages, each of which says all that the
// ones before it said. Holds one message, so a caller that reads slowly costs no memory.
template <class Message>
class ProgressCall : public Call {
 public:
  // Sends the message as soon as the one before it is sent; replaces one that waits. The last
  // message before Finish is always sent, unless the call ends with an error. Any thread, before
  // Finish.
  virtual void Send(Message message) = 0;
};

}  // namespace simile::service
