#include "engine/snapshots/failing_memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

// Allocations until the one that fails; 0 when none will.
thread_local std::size_t left = 0;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (left > 0 && --left == 0) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, std::max<std::size_t>(bytes, 1)) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace simile::engine {

FailingMemory::FailingMemory(std::size_t number) { left = number; }
FailingMemory::~FailingMemory() { left = 0; }

bool FailingMemory::has_failed() const { return left == 0; }

}  // namespace simile::engine
