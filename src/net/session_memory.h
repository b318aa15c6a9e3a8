#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace simile::net {

struct FreeMemory {
  void operator()(void* memory) const { ::operator delete(memory); }
};

// Memory of nghttp2, counted by connection. Beyond the limit it finds none, which ends the
// connection. Where the process has none, nghttp2 gets the connection's spare block, so that an
// answer can still be sent. The size is in front of each block.
inline constexpr std::size_t kSizeBytes = alignof(std::max_align_t);
inline constexpr std::size_t kSpareBytes = 8U << 10;

struct CountedMemory {
  std::uint64_t used = 0;
  std::uint64_t most = 0;
  std::unique_ptr<void, FreeMemory> spare;

  static std::size_t& SizeOf(void* block) {
    return *reinterpret_cast<std::size_t*>(static_cast<std::byte*>(block) - kSizeBytes);
  }
  void* Allocate(std::size_t size) {
    if (size > most || used > most - size) return nullptr;
    void* begin = ::operator new(kSizeBytes + size, std::nothrow);
    if (begin == nullptr && kSizeBytes + size <= kSpareBytes) begin = spare.release();
    if (begin == nullptr) return nullptr;
    used += size;
    void* const block = static_cast<std::byte*>(begin) + kSizeBytes;
    SizeOf(block) = size;
    return block;
  }
  void Free(void* block) {
    if (block == nullptr) return;
    used -= SizeOf(block);
    ::operator delete(static_cast<std::byte*>(block) - kSizeBytes);
  }
  void* Reallocate(void* block, std::size_t size) {
    void* const larger = Allocate(size);
    if (larger == nullptr || block == nullptr) return larger;
    std::memcpy(larger, block, std::min(size, SizeOf(block)));
    Free(block);
    return larger;
  }
};

}  // namespace simile::net
