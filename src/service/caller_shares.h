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

// Who calls, so that one cannot take what is there for all: a number for each address, the same one
// for several now and then.
using CallerKey = std::uint8_t;
inline constexpr std::size_t kCallerKeys = std::size_t{std::numeric_limits<CallerKey>::max()} + 1;

CallerKey HashPeer(const net::PeerKey& peer);
//   name  of a principal, which shares with nobody because of its address
CallerKey HashPrincipalName(std::string_view name);

// An amount of something that is there for all callers. What one of them holds is never more than
// what it leaves free: alone it gets half, two that want all get a third each. So there is always
// some left for one that comes later, but less each time, which is of use with bytes and not with
// places. Of those each caller that holds none gets one while any is free, and some are kept for
// such callers. Takes no memory. Safe to use from any thread.
class CallerShares {
 public:
  static CallerShares OfBytes(std::uint64_t bytes_max) { return {bytes_max, false}; }
  // From 1,024 places up every caller (key) gets one, whatever the others hold.
  static CallerShares OfPlaces(std::uint64_t places_max) { return {places_max, true}; }

  // Whether the caller may hold so much more: bytes, or one place. When nothing is held, anything
  // may be.
  bool Fits(CallerKey caller, std::uint64_t amount) const {
    return FitsBeside(held(), caller, amount);
  }
  // Holds it for the caller if it fits.
  bool Hold(CallerKey caller, std::uint64_t amount) {
    std::uint64_t others = held();
    do {
      if (!FitsBeside(others, caller, amount)) return false;
    } while (!held_.compare_exchange_weak(others, others + amount, std::memory_order_relaxed));
    by_caller_[caller].fetch_add(amount, std::memory_order_relaxed);
    return true;
  }
  // The same in any case.
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

  // Why so much more does not fit, for a message to the caller.
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
  const std::uint64_t kept_for_first_;  // places that only callers get that hold none
  std::atomic<std::uint64_t> held_ = 0;
  std::array<std::atomic<std::uint64_t>, kCallerKeys> by_caller_{};
};

}  // namespace simile::service
