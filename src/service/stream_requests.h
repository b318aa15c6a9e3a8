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
  // Takes over the first message's order; refuses an unknown one, and another one later. A first
  // message that is refused decides as one that says nothing.
  absl::Status Agree(const v1::SearchStreamRequest& request);
  // Each answer as soon as it is ready; else in the order of the requests.
  bool as_completed() const { return as_completed_.value_or(false); }

 private:
  std::optional<bool> as_completed_;  // nothing before the first message
};

// The most bytes that the request lets its answer have.
std::uint64_t ReplyBytesMax(const v1::SearchStreamRequest& request, const Limits& limits);

// Decides which requests of a stream are worked on, and in which order their answers are sent. A
// request counts from Add until its answer is Sent. Knows requests by their numbers, in the order
// of Add; keeps nothing of those that do not count. Not thread-safe.
class StreamWindow {
 public:
  struct Limits {
    std::size_t requests_max = 0;
    std::uint64_t reply_bytes_max = 0;  // sum over the requests
  };
  explicit StreamWindow(const Limits& limits) : limits_(limits) {}

  // Answers are sent in the order of the requests, or of their completion. Before the first Add.
  void SetAsCompleted(bool as_completed) { as_completed_ = as_completed; }

  std::size_t count() const { return open_.size(); }
  bool empty() const { return open_.empty(); }
  // Whether a request that needs no reply bytes would be taken.
  bool has_place() const { return open_.size() < limits_.requests_max; }
  // Whether a request whose answer may have so many bytes is taken now. One alone always is.
  bool Admits(std::uint64_t reply_bytes) const;
  // The number of the next one that is taken.
  std::uint64_t next_number() const { return added_ + 1; }
  // Takes it and returns its number. REQUIRES: Admits(reply_bytes). May throw bad_alloc; then it is
  // not taken.
  std::uint64_t Add(std::uint64_t reply_bytes);

  // Its answer is ready. Takes no memory. REQUIRES: added, and called once.
  void Complete(std::uint64_t number);
  // The request whose answer is to be sent next; nothing while that is not ready.
  std::optional<std::uint64_t> NextToSend() const;
  // Its answer is sent, or will never be. REQUIRES: completed.
  void Sent(std::uint64_t number);

 private:
  using Numbers = std::list<std::uint64_t>;
  struct Request {
    bool is_complete() const { return own_place.empty(); }

    std::uint64_t reply_bytes = 0;
    Numbers own_place;          // its number, until it completes and this moves to completed_
    Numbers::iterator place{};  // of its number, there or here
  };
  const Limits limits_;
  bool as_completed_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t reply_bytes_ = 0;          // sum over open_
  std::map<std::uint64_t, Request> open_;  // by number
  Numbers completed_;                      // of those, in the order of completion
};

}  // namespace simile::service
