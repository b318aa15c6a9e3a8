#pragma once

#include <cstddef>

namespace simile::tests {

// Counts allocations by operator new and by mmap, on all threads, while it exists.
// counted_memory.cpp replaces both for the whole program (mmap with the linker's --wrap). Only one
// may exist at a time.
class CountedMemory {
 public:
  CountedMemory();
  ~CountedMemory();
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::size_t allocations() const;
};

}  // namespace simile::tests
