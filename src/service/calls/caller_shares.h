#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "net/peers.h"

namespace simile::service {

// Identifies a caller in the accounts of shared budgets, so that no caller takes all: a hash of its
// address or its name. Sometimes several callers have the same key.
using CallerKey = std::uint8_t;
inline constexpr std::size_t kCallerKeys = std::size_t{std::numeric_limits<CallerKey>::max()} + 1;

CallerKey HashPeer(const net::PeerKey& peer);
//   name  of a principal: it has the same key from every address
CallerKey HashPrincipalName(std::string_view name);

// A budget of bytes or places that all callers share. A caller never holds more than it leaves
// free. Alone it gets half; two callers that want everything get a third each. So some is always
// left for the next caller, but less each time. That suits bytes. Of places, a caller that holds
// none gets one while any is free, and some are kept for such callers. Takes no memory. Safe to use
// from any thread.
class CallerShares {
 public:
  static CallerShares OfBytes(std::uint64_t bytes_max) { return {bytes_max, false}; }
  // With 1,024 places or more, every caller key gets one place, whatever the other callers hold.
  static CallerShares OfPlaces(std::uint64_t places_max) { return {places_max, true}; }

  // Whether the caller may hold this much more: bytes, or one place. While nothing is held, any
  // amount fits.
  bool Fits(CallerKey caller, std::uint64_t amount) const {
    return FitsBeside(held(), caller, amount);
  }
  // Holds the amount for the caller if it fits, and returns whether it does.
  bool Hold(CallerKey caller, std::uint64_t amount) {
    std::uint64_t others = held();
    do {
      if (!FitsBeside(others, caller, amount)) return false;
    } while (!held_.compare_exchange_weak(others, others + amount, std::memory_order_relaxed));
    by_caller_[caller].fetch_add(amount, std::memory_order_relaxed);
    return true;
  }
  // Holds the amount, whether or not it fits.
  void Add(CallerKey caller, std::uint64_t amount) {
    by_caller_[caller].fetch_add(amount, std::memory_order_relaxed);
    held_.fetch_add(amount, std::memory_order_relaxed);
  }
  void GiveBack(CallerKey caller, std::uint64_t amount) {
    by_caller_[caller].fetch_sub(amount, std::memory_order_relaxed);
    held_.fetch_sub(amount, std::memory_order_relaxed);
  }

  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t HeldBy(CallerKey caller) const {
    return by_caller_[caller].load(std::memory_order_relaxed);
  }

  // Why the amount does not fit, for a message to the caller.
  std::string Shortage(CallerKey caller, std::uint64_t amount) const;

 private:
  CallerShares(std::uint64_t amount_max, bool of_places)
      : amount_max_(amount_max),
        of_places_(of_places),
        kept_for_first_(of_places ? std::min<std::uint64_t>(kCallerKeys, amount_max / 4) : 0) {}

  bool FitsBeside(std::uint64_t held, CallerKey caller, std::uint64_t amount) const {
    if (held == 0 || amount == 0) return true;
    const std::uint64_t own = HeldBy(caller);
    if (of_places_ && own == 0) return held + amount <= amount_max_;
    return held + amount + own + amount <= amount_max_ &&
           held + amount + kept_for_first_ <= amount_max_;
  }

  const std::uint64_t amount_max_;
  const bool of_places_;
  const std::uint64_t kept_for_first_;  // places for callers that hold none
  std::atomic<std::uint64_t> held_ = 0;
  std::array<std::atomic<std::uint64_t>, kCallerKeys> by_caller_{};
};

}  // namespace simile::service
