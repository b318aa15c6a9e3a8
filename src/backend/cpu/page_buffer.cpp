#include "backend/cpu/page_buffer.h"

#include <sys/mman.h>

#include <new>

namespace simile::backend::cpu {
namespace {

constexpr std::size_t kHugePageBytes = 2U << 20;

}  // namespace

std::size_t PageBuffer::RoundedBytes(std::size_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

PageBuffer::PageBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t rounded = RoundedBytes(bytes);
  void* pages = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  // Advice only: where the system has no huge pages, small ones do.
  static_cast<void>(madvise(pages, rounded, MADV_HUGEPAGE));
  data_ = pages;
  bytes_ = rounded;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace simile::backend::cpu
