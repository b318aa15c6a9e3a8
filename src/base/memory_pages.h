#pragma once

#include <cstddef>
#include <utility>

namespace simile::base {

// Anonymous pages from the kernel: zeroed, and not resident until written to. A buffer of 2 MiB or
// more uses huge pages where the kernel has them. A huge page replaces 512 small pages, so that a
// scan of gigabytes misses the TLB far less often. Movable, not copyable.
class PageBuffer {
 public:
  // The size of a buffer for `bytes`: whole pages, or whole huge pages from 2 MiB on.
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

  // Frees the buffer when it is larger than `bytes`.
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

// Gives freed memory back to the kernel. The allocator keeps it for later allocations. After a load
// these are few, so the load's temporary memory would stay resident. Does nothing where the
// allocator has no such call. To be called after large work, not for requests.
// Cost: a pass over the free blocks of each arena of the allocator, and a system call for each
// block that has whole pages.
void ReturnFreedMemory();

// Gives each block of 4 MiB or more a mapping of its own, which returns to the kernel when the
// block is freed. By default the allocator raises this limit whenever such a block is freed. Larger
// blocks then come from its heaps, where a block in use keeps the free memory below it from the
// kernel: a server grew with every reload. Smaller blocks, replies among them, stay in the heaps.
// REQUIRES: the program has one thread.
void MapLargeBlocks();

// Makes a vector at least this large. For buffers that are kept from one search to the next and
// only grow, so that a warm search allocates nothing. May throw std::bad_alloc.
template <class Vector>
void GrowTo(Vector& vector, std::size_t size) {
  if (vector.size() < size) vector.resize(size);
}

}  // namespace simile::base
