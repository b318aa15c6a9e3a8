#pragma once

#include <cstddef>

namespace simile::testing {

// Counts what the program takes from the heap by operator new and from the system by mmap, which
// counted_memory.cpp replaces for the whole program (mmap with the linker's --wrap). Counts while
// it lives, on all threads; one at a time.
class CountedMemory {
 public:
  CountedMemory();
  ~CountedMemory();
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::size_t taken() const;
};

}  // namespace simile::testing
