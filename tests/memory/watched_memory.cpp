#include "memory/watched_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

using Of = simile::tests::WatchedMemory::Of;

std::atomic<bool> is_watching{false};
std::atomic<Of> watched_threads{Of::kAllThreads};
std::atomic<std::size_t> failing_number{0};
std::atomic<std::size_t> count{0};
thread_local bool is_watcher = false;  // the thread that made the WatchedMemory

// Counts an allocation. Returns whether it fails.
bool Fails() {
  if (!is_watching.load(std::memory_order_relaxed)) return false;
  const Of threads = watched_threads.load(std::memory_order_relaxed);
  if (threads != Of::kAllThreads && (threads == Of::kThisThread) != is_watcher) return false;
  return count.fetch_add(1, std::memory_order_relaxed) + 1 == failing_number;
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = nullptr;
  if (Fails() || posix_memalign(&memory, alignment, std::max<std::size_t>(bytes, 1)) != 0) {
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

// The names that the linker option --wrap=mmap uses.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
  if (Fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(address, bytes, protection, flags, file, offset);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
}

namespace simile::tests {

WatchedMemory::WatchedMemory(Of threads, std::size_t failing) {
  is_watcher = true;
  watched_threads = threads;
  failing_number = failing;
  count = 0;
  is_watching = true;
}

WatchedMemory::~WatchedMemory() {
  is_watching = false;
  is_watcher = false;
}

std::size_t WatchedMemory::allocations() const { return count; }

bool WatchedMemory::has_failed() const { return failing_number != 0 && count >= failing_number; }

}  // namespace simile::tests
