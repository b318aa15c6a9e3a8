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

// Gives memory that was freed back to the kernel. The allocator keeps it for later allocations,
// which after a load are few: what a load needed for a moment would stay resident.
// Cost: a pass over the free blocks of each of the allocator's arenas, and one call to the kernel
// for each that has whole pages; for after large work, not for requests. Does nothing where the
// allocator has no such call.
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
