#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::v1 {
class SearchStreamRequest;
}

namespace simile::service {

// Checks of a message of SearchStream, except of the request in it. All errors are
// INVALID_FIELD; all checks are pure.

// How long the request may take: its timeout, or the default.
absl::StatusOr<Clock::Duration> ValidateTimeout(const v1::SearchStreamRequest& request,
                                                const Limits& limits);

// The order of a stream's answers, which its first message decides.
class StreamOrder {
 public:
  // Takes the order of the first message. Refuses an unknown order, and later a message with
  // another order. A first message that is refused counts as one without an order.
  absl::Status Agree(const v1::SearchStreamRequest& request);
  // Each answer as soon as it is ready; else in the order of the requests.
  bool as_completed() const { return as_completed_.value_or(false); }

 private:
  std::optional<bool> as_completed_;  // nothing before the first message
};

// The largest answer that the request allows, bytes.
std::uint64_t ReplyBytesMax(const v1::SearchStreamRequest& request, const Limits& limits);

// Decides which requests of a stream are worked on, and in which order their answers are sent. A
// request counts from Add until its answer is Sent. Identifies requests by numbers, in the order of
// Add; keeps nothing of a request that no longer counts. Not thread-safe.
class StreamWindow {
 public:
  struct Limits {
    std::size_t requests_max = 0;
    std::uint64_t reply_bytes_max = 0;  // sum over the requests
  };
  explicit StreamWindow(const Limits& limits) : limits_(limits) {}

  // Chooses whether answers are sent in the order of completion or of the requests. Call before the
  // first Add.
  void SetAsCompleted(bool as_completed) { as_completed_ = as_completed; }

  std::size_t count() const { return open_.size(); }
  bool empty() const { return open_.empty(); }
  // Whether a request that needs no reply bytes would be taken.
  bool has_place() const { return open_.size() < limits_.requests_max; }
  // Whether a request is taken now whose answer may have this many bytes. A request alone always
  // is.
  bool Admits(std::uint64_t reply_bytes) const;
  // The number of the next request that is taken.
  std::uint64_t next_number() const { return added_ + 1; }
  // Takes a request and returns its number. REQUIRES: Admits(reply_bytes). May throw bad_alloc;
  // then the request is not taken.
  std::uint64_t Add(std::uint64_t reply_bytes);

  // The request's answer is ready. Takes no memory. REQUIRES: added, and called once.
  void Complete(std::uint64_t number);
  // The request whose answer is to be sent next; nothing while its answer is not ready.
  std::optional<std::uint64_t> NextToSend() const;
  // The request's answer is sent, or will never be. REQUIRES: completed.
  void Sent(std::uint64_t number);

 private:
  using Numbers = std::list<std::uint64_t>;
  struct Request {
    bool is_complete() const { return own_place.empty(); }

    std::uint64_t reply_bytes = 0;
    Numbers own_place;          // a list of its number; moved to completed_ when it completes
    Numbers::iterator place{};  // of its number, in own_place or completed_
  };
  const Limits limits_;
  bool as_completed_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t reply_bytes_ = 0;          // sum over open_
  std::map<std::uint64_t, Request> open_;  // by number
  Numbers completed_;  // numbers of completed requests, in the order of completion
};

}  // namespace simile::service
