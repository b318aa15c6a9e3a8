#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "base/error_detail.h"
#include "base/long_work.h"
#include "service/access/call_access.h"
#include "service/calls/caller_shares.h"
#include "service/calls/resolve_workers.h"
#include "simile/clock.h"

namespace simile::observe {
class Metrics;
}

namespace simile::service {

// Runs a step of a call and returns its status: OK when the step returns nothing. Turns exceptions
// of libraries into errors: bad_alloc into OUT_OF_MEMORY, others into INTERNAL, whose message goes
// to the log and not to the caller.
template <class Step>
absl::Status Guarded(Step&& step) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Step&>>) {
      step();
      return absl::OkStatus();
    } else {
      return step();
    }
  } catch (const std::bad_alloc&) {
    return base::OutOfMemory();
  } catch (const std::exception& error) {
    return base::Error(base::ErrorReason::kInternal, error.what());
  }
}

// Data of the packed vectors of a large request. The parsed message does not have it: it stays in
// the received bytes. So its floats are copied only once, into the matrix that is searched.
class SentVectors {
 public:
  SentVectors() = default;
  //   data   [queries] empty if the message has the data
  //   owner  keeps the bytes alive
  //   held   bytes of memory that the owner takes
  SentVectors(std::vector<std::string_view> data, std::shared_ptr<const void> owner,
              std::uint64_t held)
      : data_(std::move(data)), owner_(std::move(owner)), held_(held) {}

  // Empty when the message has the data of the query.
  std::string_view Data(std::size_t query) const {
    return query < data_.size() ? data_[query] : std::string_view();
  }
  bool empty() const { return data_.empty(); }
  std::uint64_t held_bytes() const { return held_; }

 private:
  std::vector<std::string_view> data_;
  std::shared_ptr<const void> owner_;
  std::uint64_t held_ = 0;
};

// A response in wire form: its exact size is known before anything is written.
class Reply {
 public:
  virtual ~Reply() = default;
  // Size of the whole response message, serialized. O(1).
  virtual std::size_t bytes() const = 0;
  // True if bytes() is the exact size. False if counting stopped early because the response exceeds
  // the limit, at bytes() - 1; then the response must not be written.
  virtual bool is_exact() const { return true; }
  // Writes the response, bytes() bytes, to `out`, and returns its end.
  virtual std::uint8_t* Write(std::uint8_t* out) const = 0;
};

// REPLY_TOO_LARGE when the response has more than bytes_max bytes.
//   remedy  what the caller can do: "lower k, ..."
absl::Status CheckReplySize(const Reply& reply, std::uint64_t bytes_max, std::string_view remedy);

// REPLY_TOO_LARGE, before the response is built.
//   bytes_min  the response has more bytes than this
absl::Status ReplyTooLargeToBuild(std::uint64_t bytes_min, std::uint64_t bytes_max,
                                  std::string_view remedy);

// What handlers see of a request of any kind, without gRPC. A handler finishes its request exactly
// once, from any thread. The request and all that belongs to it live until then. The other
// functions may be called from any thread before that.
class AnyCall {
 public:
  virtual ~AnyCall() = default;

  // "simile.v1.SearchService/Search"; static storage.
  virtual std::string_view method() const = 0;
  // The caller's x-request-id, or an id made by the server when the caller sent no usable one.
  virtual std::string_view request_id() const = 0;
  virtual Clock::TimePoint arrived_at() const = 0;
  // Identifies the caller in the accounts of shared budgets (CallerShares). All calls without an
  // address have the same key.
  virtual CallerKey caller() const { return {}; }
  // What the caller may do.
  virtual CallAccess& access() { return open_access_; }
  // The caller's address, for the log; empty when the server does not keep it.
  virtual std::string_view peer() const { return {}; }
  // The caller's deadline; nothing when the caller set none.
  virtual std::optional<Clock::TimePoint> deadline() const = 0;
  // Is requested to stop when the caller cancels or disconnects. The token may be kept after the
  // call has ended. Its callbacks run on an event loop and must be short.
  virtual std::stop_token cancelled() const = 0;

  // Records what the request asks for, for its line in the log. May throw.
  //   queries  0 when the request is no search
  //   k        the largest k of the queries
  virtual void Describe(std::string_view /*collection*/, std::size_t /*queries*/,
                        std::uint32_t /*k*/) {}

  // Sets the largest response, serialized bytes: a larger one is refused (CheckReplySize). The
  // default is limits.reply_bytes_default.
  //   remedy  what the caller can do, for the message; must outlive the call
  virtual void SetReplyLimit(std::uint64_t bytes_max, std::string_view remedy) = 0;

  // Sends the response that the handler filled, if the method has one, or the error with its
  // reason, field and retry time (base/error_detail.h). Call, request and response must not be used
  // afterwards.
  virtual void Finish(const absl::Status& status) = 0;

 private:
  CallAccess open_access_;
};

// One request that is answered once: a call, or a message of a stream.
class Call : public AnyCall {
 public:
  // Frees the request once the handler has taken what it needs, because a call may wait long for
  // its answer. Call it before anything else can finish the call.
  virtual void ReleaseRequest() {}
  // The vector data of a search that its message does not have. Valid until ReleaseRequest.
  virtual const SentVectors& sent_vectors() const { return no_vectors_; }
  // The bytes of the whole response that carries this reply: a response of a stream has a tag, too.
  virtual std::uint64_t BytesWith(const Reply& reply) const { return reply.bytes(); }
  // Finishes the call with this response, unless the caller is gone. The reply is not used after
  // the return.
  virtual void FinishWith(const Reply& reply) = 0;

 private:
  const SentVectors no_vectors_;
};

// A call that reports progress: several messages answer it, and each replaces what the messages
// before it said. At most one message waits, so a caller that reads slowly costs no memory.
template <class Message>
class ProgressCall : public AnyCall {
 public:
  // Sends the message as soon as the message before it is sent; replaces a message that still
  // waits. The last message before Finish is always sent, unless the call ends with an error. Any
  // thread, before Finish.
  virtual void Send(Message message) = 0;
};

// Finishes a call with the reply that `make` returns, or with its error.
//   make  returns an absl::StatusOr of a Reply; may throw
template <class Make>
void FinishWithReply(Call& call, Make&& make) {
  std::optional<typename std::invoke_result_t<Make>::value_type> reply;
  const absl::Status status = Guarded([&] {
    auto made = make();
    absl::Status make_status = made.status();
    if (made.ok()) reply.emplace(*std::move(made));
    return make_status;
  });
  reply ? call.FinishWith(*reply) : call.Finish(status);
}

// kCancelled, of calls whose callers are gone.
absl::Status CallerGoneError();
// kStopping, of calls that come after the server began to stop.
absl::Status StoppingError();

// Makes the long work of a call on a worker. After each piece other calls may run. The work ends
// when the caller is gone or the deadline has passed. Borrows the clock.
//   step  what the call has not reached when its work ends, for the message; static storage
// Errors of the work: CANCELLED, DEADLINE_EXCEEDED.
base::LongWork MakeLongWork(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                            std::string_view step);
// The same with the caller's deadline, if the caller has set one.
base::LongWork MakeLongWork(const AnyCall& call, const Clock& clock, std::string_view step);

// Has a worker run a part of a call. Errors: kQueueFull.
absl::Status PostToWorkers(ResolveWorkers& workers, std::function<void()> work,
                           const WorkNeeds& needs);

// Counts a call as rejected if its error is a full queue, a passed deadline or a cancellation.
void CountRefusal(observe::Metrics& metrics, const absl::Status& status);

}  // namespace simile::service
