#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/thread_pool.h"

namespace simile::bench {

// One way to read a long stretch of memory as fast as the machine can.
struct ReadPattern {
  std::string name;  // "avx2, 2 streams, prefetch 1024"
  // Adds up bytes [begin, begin + size); size is a multiple of kReadMultiple. The sum keeps the
  // compiler from removing the reads.
  std::uint64_t (*read)(const std::byte* begin, std::size_t size);
};

inline constexpr std::size_t kReadMultiple = 1024;

// The patterns this processor can run: one, two and four streams, without and with software
// prefetch at several distances, with its widest registers and without any.
std::vector<ReadPattern> ReadPatterns();

// Reads `memory` once, each thread of the pool its own contiguous share, all starting together.
// Returns the time from the first start to the last end, so that waking the threads is not counted.
std::chrono::duration<double> TimeRead(const ReadPattern& pattern,
                                       std::span<const std::byte> memory,
                                       backend::cpu::ThreadPool& pool);

}  // namespace simile::bench
