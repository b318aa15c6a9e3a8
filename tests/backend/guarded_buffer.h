#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace simile::tests {

// Aligned memory for `count` T with a pattern before and after it, which reveals writes out of
// bounds.
template <class T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t count)
      : count_(count),
        bytes_(kGuardBytes + count * sizeof(T) + kGuardBytes),
        memory_(static_cast<unsigned char*>(::operator new(bytes_, kAlignment))) {
    std::memset(memory_, kPattern, bytes_);
  }
  ~GuardedBuffer() { ::operator delete(memory_, kAlignment); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_ + kGuardBytes); }
  std::span<T> all() { return {data(), count_}; }
  bool GuardsIntact() const {
    for (std::size_t i = 0; i < kGuardBytes; ++i) {
      if (memory_[i] != kPattern || memory_[bytes_ - 1 - i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr unsigned char kPattern = 0xA5;
  static constexpr std::align_val_t kAlignment{64};

  std::size_t count_;
  std::size_t bytes_;
  unsigned char* memory_;
};

}  // namespace simile::tests
