#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "backend/cpu/int8_backend.h"

namespace simile::tests {

// An index of any size is built before MakeResident returns.
inline constexpr std::size_t kInForeground = std::size_t{1} << 40;

// The same kernel, which scans a block for as few queries at once as it can.
inline const backend::cpu::Int8Kernel* InSmallPieces(const backend::cpu::Int8Kernel* kernel) {
  static std::mutex mutex;
  static std::map<const backend::cpu::Int8Kernel*, backend::cpu::Int8Kernel> copies;
  const std::lock_guard lock(mutex);
  const auto [copy, is_new] = copies.try_emplace(kernel, *kernel);
  copy->second.products_at_once = 1;
  return &copy->second;
}

// Every segment is packed at once, into blocks as small as they come, so that small ones have many,
// every pass uses all threads, and searches are cut into small pieces.
//   isa  as OptionsFor takes it
inline backend::cpu::Int8Options SmallBlocks(unsigned threads, const char* isa = "") {
  backend::cpu::Int8Options options = backend::cpu::OptionsFor(isa);
  if (options.large == nullptr) return options;
  options.large = InSmallPieces(options.large);
  options.small = InSmallPieces(options.small);
  options.threads = threads;
  options.tuning.block_bytes = 1;
  options.tuning.scan_rows_max = 0;
  options.foreground_bytes_max = kInForeground;
  options.small_pass_bytes = 0;
  return options;
}

}  // namespace simile::tests
