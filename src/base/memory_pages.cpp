#include "base/memory_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>  // defines __GLIBC__
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace simile::base {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t PageBytesFor(std::size_t bytes) {
  return bytes < kHugePageBytes ? kPageBytes : kHugePageBytes;
}

}  // namespace

std::size_t PageBuffer::RoundedBytes(std::size_t bytes) {
  const std::size_t page = PageBytesFor(bytes);
  return (bytes + page - 1) / page * page;
}

// Maps one page more than needed, aligns the buffer within the mapping, and unmaps both ends.
PageBuffer::PageBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t page = PageBytesFor(bytes);
  const std::size_t wanted = RoundedBytes(bytes);
  const std::size_t mapped = wanted + page;
  void* const start =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(start);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(first) % page;
  const std::size_t before = offset == 0 ? 0 : page - offset;
  const std::size_t after = mapped - before - wanted;
  if (before != 0) munmap(first, before);
  if (after != 0) munmap(first + before + wanted, after);
  // Advice only: without huge pages the kernel uses small ones.
  if (page == kHugePageBytes) madvise(first + before, wanted, MADV_HUGEPAGE);
  data_ = first + before;
  bytes_ = wanted;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void MapLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 4 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargeBytes);  // glibc keeps the same ratio
#endif
}

}  // namespace simile::base
