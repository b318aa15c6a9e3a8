#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace simile::engine {

// Counts the host memory of a generation among that of all, while any snapshot of it lives: also
// when it is replaced and only calls under way hold it. Snapshots that share its parts share this.
class HeldMemory {
 public:
  using Sum = std::atomic<std::uint64_t>;

  HeldMemory(std::shared_ptr<Sum> sum, std::uint64_t bytes) : sum_(std::move(sum)), bytes_(bytes) {
    *sum_ += bytes_;
  }
  ~HeldMemory() { *sum_ -= bytes_; }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Sum> sum_;
  const std::uint64_t bytes_;
};

}  // namespace simile::engine
