#pragma once

#include <cstddef>
#include <optional>

#include "backend/cpu/thread_pool.h"
#include "bench/read_bandwidth.h"
#include "data/page_buffer.h"

namespace simile::bench {

// The floor of a search that reads a byte a dimension once: the time to do only that, over memory
// of the same size with random content, by the pattern that is fastest here.
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
  data::PageBuffer memory_;
  ReadPattern pattern_;
};

}  // namespace simile::bench
