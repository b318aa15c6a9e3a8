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

// Headers that are the caller's own, or a handler's: not those of HTTP/2 and gRPC. Values of names
// that end with "-bin" are bytes, without base64.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// The first value of the name; empty for none.
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
  std::string details;  // grpc-status-details-bin, without base64; left out when it is too long
  // Lower-case names; values of visible ASCII without spaces at their ends (RFC 9113,
  // section 8.2.1).
  Metadata trailing;
};

// How many calls of a loop have not been released. The last one may be released while the server
// ends, so calls share it.
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

// A call of a method as its handler has it, from its begin until the handler has finished it and
// the transport has let go of it. The transport calls the virtual functions on the loop's thread;
// they must not throw. The other functions may be called from any thread until the end.
class RpcCall : private EventLoop::Task {
 public:
  // Why a request is not received.
  using Problem = RequestBody::Problem;

  //   stream  that carries it
  RpcCall(Http2Stream& stream, CallHead head);
  ~RpcCall() override;
  RpcCall(const RpcCall&) = delete;
  RpcCall& operator=(const RpcCall&) = delete;

  const CallHead& head() const { return head_; }
  // Whether the server stops.
  bool is_stopping() const;

  // The server stops: a call that would stay as long as its caller likes ends soon. Again every
  // kStopInterval until the call has ended.
  static constexpr std::chrono::milliseconds kStopInterval{100};
  virtual void Stop() {}

 protected:
  // The call begins.
  //   request  of a method that takes one; empty for one that takes a stream
  virtual void Begin(ReceivedMessage request) = 0;
  // In the place of Begin or Received: the request cannot be received, and no other will be.
  //   problem  kTooLarge or kNoSpace
  virtual void Refused(Problem problem, std::uint32_t declared_bytes) = 0;
  // What WantMessage asked for; nothing when the caller sends no more, or is gone.
  virtual void Received(std::optional<ReceivedMessage> /*message*/) {}
  // The message of Send is on its way, or was dropped.
  virtual void Sent(bool /*ok*/) {}
  // The caller has cancelled, its deadline has passed, or the connection is closed, before the loop
  // has seen Finish.
  // From now on nothing is sent, but Finish must still be called.
  virtual void Gone() {}
  // Destroys the call.
  virtual void Release() = 0;

  // Of a method that takes a stream: Received will be called once. Not again before that.
  void WantMessage();
  // Sends a message; Sent will be called once. Not again before that.
  //   take_by  when the caller must have taken it; after that the call is cut
  void Send(std::shared_ptr<const OutgoingMessage> message, Clock::TimePoint take_by);
  // Ends the call, after a last message or without one, for which Sent is not called. Once, and the
  // last use of the call. Not while Send is under way.
  void Finish(std::shared_ptr<const OutgoingMessage> last, CallEnd end, Clock::TimePoint take_by);
  // Ends the call without an answer: Gone will be called.
  void Cut();
  // For timers of the handler, which are of the loop's thread.
  EventLoop& loop() const { return loop_; }
  // Headers before the first message. In Begin only.
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
  // On the loop, by the stream.
  // The stream is gone, or goes on without the call.
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
  // A call has arrived, on a loop's thread: with its request, or with the beginning of a stream.
  // The transport then calls Begin or Refused. May throw bad_alloc.
  virtual RpcCall& NewCall(Http2Stream& stream, CallHead head) = 0;
};

}  // namespace simile::net
