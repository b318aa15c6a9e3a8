#pragma once

#include <cstddef>

namespace simile::engine {

// While one exists, the allocation of this number, counted from 1, fails with bad_alloc on the
// thread that made it. One at a time.
class FailingMemory {
 public:
  explicit FailingMemory(std::size_t number);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  bool has_failed() const;  // false when fewer allocations were made
};

}  // namespace simile::engine
