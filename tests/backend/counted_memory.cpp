#include "backend/counted_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> count{0};

void Count() {
  if (counting.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  Count();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// The names that the linker option --wrap=mmap uses.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
  Count();
  return __real_mmap(address, bytes, protection, flags, file, offset);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
}

namespace simile::tests {

CountedMemory::CountedMemory() {
  count = 0;
  counting = true;
}
CountedMemory::~CountedMemory() { counting = false; }

std::size_t CountedMemory::allocations() const { return count; }

}  // namespace simile::tests
