#pragma once

#include <cstdint>
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

}  // namespace simile::service
