#pragma once

#include <array>
#include <cstdint>

#include "net/cut_reports.h"
#include "net/token_bucket.h"
#include "simile/clock.h"

namespace simile::net {

// How often a peer may send each kind of frame on one connection. Not thread-safe.
class FrameRates {
 public:
  // In the order of the allowances.
  enum class Kind : std::uint8_t { kPing, kSettings, kPriority, kWindowUpdate, kUnknown };

  //   clock  borrowed
  explicit FrameRates(const Clock& clock);

  // A frame came. Anything but kNone: it is one too many.
  Violation Count(Kind kind);
  // The server sent HEADERS or DATA, which the peer may answer.
  void OnFrameSent();

 private:
  static constexpr std::size_t kKinds = 5;
  struct Allowance;
  static const std::array<Allowance, kKinds> kAllowances;

  const Clock& clock_;
  std::array<TokenBucket, kKinds> buckets_;
};

}  // namespace simile::net
