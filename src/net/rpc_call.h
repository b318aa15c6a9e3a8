#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "net/event_loop.h"
#include "net/grpc_wire.h"
#include "net/peers.h"
#include "net/request_body.h"
#include "simile/clock.h"

namespace simile::net {

class Http2Stream;

// Headers of a caller or of a handler, without the headers of HTTP/2 and gRPC. The value of a name
// that ends with "-bin" is bytes, not base64.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// Returns the first value of the name; empty when there is none.
std::string_view FindValue(const Metadata& metadata, std::string_view name);

// What a caller sends before its messages.
struct CallHead {
  Metadata metadata;
  std::optional<Clock::TimePoint> deadline;
  std::shared_ptr<const Peer> peer;
};

// How a call ends.
struct CallEnd {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  std::string details;  // grpc-status-details-bin as bytes; left out beyond 5 KiB of base64
  // Lower-case names; values of visible ASCII without spaces at their ends (RFC 9113,
  // section 8.2.1).
  Metadata trailing;
};

// Counts the calls of a loop that are not released yet. Calls share it, because the last call may
// be released while the server is destroyed.
class OpenCalls {
 public:
  void Add() { count_.fetch_add(1, std::memory_order_relaxed); }
  void Remove();
  // False when `timeout` passes first.
  bool AwaitNone(Clock::Duration timeout);

 private:
  std::atomic<std::int64_t> count_ = 0;
  std::atomic<bool> is_awaited_ = false;
  std::mutex mutex_;
  std::condition_variable none_;
};

// A call of a method as its handler sees it. It lives until the handler has finished it and the
// transport has released it. The transport calls the virtual functions on the loop's thread; they
// must not throw. Any thread may call the other functions until Finish.
class RpcCall : private EventLoop::Task {
 public:
  // Why a request is not received.
  using Problem = RequestBody::Problem;

  //   stream  carries the call
  RpcCall(Http2Stream& stream, CallHead head);
  ~RpcCall() override;
  RpcCall(const RpcCall&) = delete;
  RpcCall& operator=(const RpcCall&) = delete;

  const CallHead& head() const { return head_; }
  // Whether the server is stopping.
  bool is_stopping() const;

  // Called when the server stops, and again every kStopInterval until the call has ended. A call
  // that its caller could keep open must end soon.
  static constexpr std::chrono::milliseconds kStopInterval{100};
  virtual void Stop() {}

 protected:
  // The call begins.
  //   request  empty when the method takes a stream
  virtual void Begin(ReceivedMessage request) = 0;
  // Called instead of Begin or Received: the request cannot be received, and no other request
  // follows.
  //   problem  kTooLarge or kNoSpace
  virtual void Refused(Problem problem, std::uint32_t declared_bytes) = 0;
  // The message that WantMessage asked for; nothing when the caller sends no more, or is gone.
  virtual void Received(std::optional<ReceivedMessage> /*message*/) {}
  // The message of Send is on its way (`ok`), or was dropped.
  virtual void Sent(bool /*ok*/) {}
  // The caller has cancelled, its deadline has passed, or the connection is closed, before the loop
  // has seen Finish. Nothing is sent from now on, but Finish must still be called.
  virtual void Gone() {}
  // Destroys the call.
  virtual void Release() = 0;

  // Asks for the next message, when the method takes a stream. Received is called once; do not ask
  // again before.
  void WantMessage();
  // Sends a message. Sent is called once; do not send again before.
  //   take_by  the call is cut when the caller has not taken the message by then
  void Send(std::shared_ptr<const OutgoingMessage> message, Clock::TimePoint take_by);
  // Ends the call, after a last message unless `last` is null. Sent is not called for it. Called
  // once, as the last use of the call, and not while a message of Send is under way.
  void Finish(std::shared_ptr<const OutgoingMessage> last, CallEnd end, Clock::TimePoint take_by);
  // Ends the call without an answer: Gone will be called.
  void Cut();
  // For timers of the handler, on the loop's thread.
  EventLoop& loop() const { return loop_; }
  // Sets the headers that go before the first message. Called in Begin only.
  void SetInitialMetadata(Metadata metadata);

 private:
  friend class Http2Stream;

  // What the handler has asked for and the loop has not seen.
  struct Outbox {
    bool wants_message = false;
    bool is_cut = false;
    bool is_finished = false;
    std::shared_ptr<const OutgoingMessage> message;
    Clock::TimePoint take_by;
    CallEnd end;
  };

  void Run() final;
  // The stream calls it on the loop: the stream is gone, or goes on without the call.
  void Detach();
  void ReleaseIfDone();
  template <class Change>
  void Ask(const Change& change);

  const CallHead head_;
  EventLoop& loop_;
  const std::shared_ptr<OpenCalls> open_calls_;
  const std::atomic<bool>& server_stops_;
  std::mutex mutex_;  // guards outbox_
  Outbox outbox_;
  // Of the loop.
  Http2Stream* stream_;  // null once it is detached
  bool is_finished_ = false;
};

// A method of a server. Outlives its calls.
class RpcMethod {
 public:
  virtual ~RpcMethod() = default;
  virtual std::string_view path() const = 0;  // "/simile.v1.SearchService/Search"
  // Whether its callers send any number of messages; otherwise exactly one.
  virtual bool takes_stream() const = 0;
  // Makes the call that has arrived, on a loop's thread. The transport then calls Begin or Refused.
  // May throw bad_alloc; then the transport ends the call.
  virtual RpcCall& NewCall(Http2Stream& stream, CallHead head) = 0;
};

}  // namespace simile::net
