#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <nghttp2/nghttp2.h>

#include "net/cut_reports.h"
#include "net/token_bucket.h"
#include "simile/clock.h"

namespace simile::net {

// How often a peer may send each kind of frame on one connection: without calls, and how much more
// for each HEADERS or DATA frame that the server sends it. Clients measure bandwidth by pings, and
// say that they have read something. Not thread-safe.
class FrameRates {
 public:
  //   clock  borrowed
  explicit FrameRates(const Clock& clock)
      : clock_(clock),
        kinds_{{{NGHTTP2_PING, 1, Violation::kPings, {{1'000, 100}, clock.Now()}},
                {NGHTTP2_SETTINGS, 0, Violation::kSettings, {{200, 50}, clock.Now()}},
                {NGHTTP2_PRIORITY, 0, Violation::kPriorities, {{1'000, 100}, clock.Now()}},
                {NGHTTP2_WINDOW_UPDATE,
                 2,
                 Violation::kWindowUpdates,
                 {{10'000, 1'000}, clock.Now()}},
                {kOtherType, 0, Violation::kUnknownFrames, {{100, 10}, clock.Now()}}}} {}

  // A frame of this type came. Anything but kNone: it is one too many.
  Violation Count(std::uint8_t type) {
    Kind& kind = *std::ranges::find(kinds_.begin(), kinds_.end() - 1, type, &Kind::type);
    return kind.bucket.Spend(clock_) ? Violation::kNone : kind.violation;
  }
  // The server sent HEADERS or DATA, which the peer may answer.
  void OnFrameSent() {
    for (Kind& kind : kinds_) {
      if (kind.by_frame > 0) kind.bucket.Give(kind.by_frame);
    }
  }

 private:
  static constexpr std::uint8_t kOtherType = 0xff;
  struct Kind {
    std::uint8_t type;
    double by_frame;
    Violation violation;
    TokenBucket bucket;
  };

  const Clock& clock_;
  std::array<Kind, 5> kinds_;  // the last is for all other types
};

}  // namespace simile::net
