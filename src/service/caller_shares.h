#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace simile::service {

// Who calls, so that one cannot take what is there for all: a number for each address, the same one
// for several now and then.
using CallerKey = std::uint8_t;

//   peer  address and port, as gRPC writes them: "ipv4:10.0.0.7:51234"
inline CallerKey CallerKeyOf(std::string_view peer) {
  const std::string_view address = peer.substr(0, peer.rfind(':'));
  return static_cast<CallerKey>(std::hash<std::string_view>()(address));
}

// An amount of something that is there for all callers. What one of them holds is never more than
// what it leaves free: alone it gets half, two that want all get a third each, and there is always
// some for one that comes later. Takes no memory. Safe to use from any thread.
class CallerShares {
 public:
  explicit CallerShares(std::uint64_t amount_max) : amount_max_(amount_max) {}

  // Whether the caller may hold so much more. When nothing is held, anything may be.
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

 private:
  bool FitsBeside(std::uint64_t held, CallerKey caller, std::uint64_t amount) const {
    if (held == 0 || amount == 0) return true;
    return held + amount + HeldBy(caller) + amount <= amount_max_;
  }

  const std::uint64_t amount_max_;
  std::atomic<std::uint64_t> held_ = 0;
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << 8> by_caller_{};
};

}  // namespace simile::service
