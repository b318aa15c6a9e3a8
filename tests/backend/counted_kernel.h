#pragma once

#include <atomic>
#include <cstddef>

#include "backend/cpu/int8_kernel.h"

namespace simile::testing {

// Passes every call on to a real kernel and counts. Kernels are plain functions, so there is one at
// a time.
class CountedKernel {
 public:
  explicit CountedKernel(const backend::cpu::Int8Kernel& kernel) {
    real_ = &kernel;
    entered_ = scans_ = nibble_scans_ = queries_ = 0;
  }

  const backend::cpu::Int8Kernel* kernel() {
    counting_ = {real_->isa, real_->code_max, real_->reads_nibbles, &Enter, real_->leave, &Scan};
    return &counting_;
  }
  // Passes that one thread makes by itself over segments of more than one block: it enters for the
  // first block, and again for the others.
  std::size_t passes() const { return entered_ / 2; }
  // Queries of all of them.
  std::size_t queries() const { return queries_ / 2; }
  std::size_t scans() const { return scans_; }
  std::size_t nibble_scans() const { return nibble_scans_; }

 private:
  static void Enter(std::size_t query_count) {
    ++entered_;
    queries_ += query_count;
    real_->enter(query_count);
  }
  static void Scan(const backend::cpu::BlockScan& block) {
    ++scans_;
    if (block.nibble_bytes != nullptr) ++nibble_scans_;
    real_->scan(block);
  }

  static inline const backend::cpu::Int8Kernel* real_ = nullptr;
  static inline std::atomic<std::size_t> entered_{0};
  static inline std::atomic<std::size_t> scans_{0};
  static inline std::atomic<std::size_t> nibble_scans_{0};
  static inline std::atomic<std::size_t> queries_{0};
  backend::cpu::Int8Kernel counting_{};
};

}  // namespace simile::testing
