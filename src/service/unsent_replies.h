#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace simile::service {

// The memory of large replies from when they are made until they are sent: bounded, since their
// callers decide when they read them. Each reply holds it, so it lives as long as the last one.
// Safe to use from any thread.
class UnsentReplies : public std::enable_shared_from_this<UnsentReplies> {
 public:
  static constexpr std::uint64_t kBytesMaxDefault = 256U << 20;
  explicit UnsentReplies(std::uint64_t bytes_max = kBytesMaxDefault) : bytes_max_(bytes_max) {}

  // Counts a reply, which calls Remove at its end. False when the others leave no space for it;
  // alone it may have more than there is.
  bool Add(std::uint64_t bytes) {
    std::uint64_t others = bytes_.load(std::memory_order_relaxed);
    do {
      if (others > 0 && others + bytes > bytes_max_) return false;
    } while (!bytes_.compare_exchange_weak(others, others + bytes, std::memory_order_relaxed));
    return true;
  }
  void Remove(std::uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace simile::service
