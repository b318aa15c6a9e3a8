#pragma once

#include <cstddef>
#include <utility>

namespace simile::data {

// Memory straight from the system, on huge pages where it has them: a scan of gigabytes then misses
// the address cache five hundred times less often. Zero when new, and not resident before it is
// written to. Movable, not copyable.
class PageBuffer {
 public:
  // What a buffer of this many bytes takes: whole huge pages.
  static std::size_t RoundedBytes(std::size_t bytes);

  PageBuffer() = default;
  // Throws std::bad_alloc.
  explicit PageBuffer(std::size_t bytes);
  PageBuffer(PageBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PageBuffer();

  // Makes it hold at least this much. What it held is lost when it grows. Throws std::bad_alloc.
  void Reserve(std::size_t bytes) {
    if (bytes > bytes_) *this = PageBuffer(bytes);
  }

  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace simile::data
