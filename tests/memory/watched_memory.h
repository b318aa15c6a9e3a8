#pragma once

#include <cstddef>

namespace simile::tests {

// Counts allocations by operator new and by mmap while it exists, and lets one fail: with
// bad_alloc, or as mmap does. watched_memory.cpp replaces both for the whole program. One at a
// time.
class WatchedMemory {
 public:
  enum class Of { kThisThread, kOtherThreads, kAllThreads };

  //   failing  the number of the allocation that fails, counted from 1; 0 for none
  explicit WatchedMemory(Of threads, std::size_t failing = 0);
  ~WatchedMemory();
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;

  std::size_t allocations() const;
  bool has_failed() const;  // false when fewer allocations were made
};

}  // namespace simile::tests
