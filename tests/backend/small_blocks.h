#pragma once

#include <cstddef>

#include "backend/cpu/int8_backend.h"

namespace simile::tests {

// An index of any size is built before MakeResident returns.
inline constexpr std::size_t kInForeground = std::size_t{1} << 40;

// Every segment is packed at once, into blocks as small as they come, so that small ones have many,
// and every pass uses all threads.
//   isa  as OptionsFor takes it
inline backend::cpu::Int8Options SmallBlocks(unsigned threads, const char* isa = "") {
  backend::cpu::Int8Options options = backend::cpu::OptionsFor(isa);
  options.threads = threads;
  options.tuning.block_bytes = 1;
  options.tuning.scan_rows_max = 0;
  options.foreground_bytes_max = kInForeground;
  options.small_pass_bytes = 0;
  return options;
}

}  // namespace simile::tests
