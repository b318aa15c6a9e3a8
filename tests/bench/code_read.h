#pragma once

#include <cstddef>
#include <optional>

#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"
#include "bench/read_bandwidth.h"

namespace simile::bench {

// The lower bound of a search that reads a byte a dimension once: the time of the read alone, over
// memory of the same size with random content, by the fastest pattern of this machine.
class CodeRead {
 public:
  // Tries all patterns.
  CodeRead(std::size_t row_count, std::size_t dim, unsigned threads);

  std::size_t bytes() const { return bytes_; }
  const std::string& pattern() const { return pattern_.name; }
  double Seconds();

 private:
  std::span<const std::byte> Memory() const { return {memory_.As<const std::byte>(), bytes_}; }

  backend::cpu::ThreadPool pool_;
  std::size_t bytes_;
  base::PageBuffer memory_;
  ReadPattern pattern_;
};

}  // namespace simile::bench
