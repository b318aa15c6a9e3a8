#pragma once

#include <cstddef>
#include <utility>

namespace simile::base {

// Anonymous pages from the kernel. From 2 MiB on they are huge ones where it has them: a huge page
// is 512 small ones, so a scan of gigabytes misses the TLB that much less often. Zeroed, and not
// resident until written to. Movable, not copyable.
class PageBuffer {
 public:
  // The size of a buffer of this many bytes: whole pages, and whole huge ones from 2 MiB on.
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

  // Makes the buffer at least this large; growing discards its contents. Throws std::bad_alloc.
  void Reserve(std::size_t bytes) {
    if (bytes > bytes_) *this = PageBuffer(bytes);
  }

  // Gives the buffer back when it is larger than this.
  void DropBeyond(std::size_t bytes) {
    if (bytes_ > bytes) *this = PageBuffer();
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

}  // namespace simile::base
