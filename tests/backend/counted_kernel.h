#pragma once

#include <atomic>
#include <cstddef>

#include "backend/cpu/int8_kernel.h"

namespace simile::tests {

// Forwards every call to a real kernel and counts. Kernels are plain functions, so only one may
// exist at a time.
class CountedKernel {
 public:
  explicit CountedKernel(const backend::cpu::Int8Kernel& kernel) {
    real_ = &kernel;
    entered_ = scans_ = int4_scans_ = queries_ = 0;
  }

  const backend::cpu::Int8Kernel* kernel() {
    counting_ = *real_;
    counting_.enter = &Enter;
    counting_.scan = &Scan;
    return &counting_;
  }
  // Passes by a single thread over segments of more than one block: it enters once for the first
  // block and once for the others.
  std::size_t passes() const { return entered_ / 2; }
  // Queries of all of them.
  std::size_t queries() const { return queries_ / 2; }
  std::size_t scans() const { return scans_; }
  std::size_t int4_scans() const { return int4_scans_; }

 private:
  static void Enter(std::size_t query_count) {
    ++entered_;
    queries_ += query_count;
    real_->enter(query_count);
  }
  static void Scan(const backend::cpu::BlockScan& block) {
    ++scans_;
    if (block.int4_bytes != nullptr) ++int4_scans_;
    real_->scan(block);
  }

  static inline const backend::cpu::Int8Kernel* real_ = nullptr;
  static inline std::atomic<std::size_t> entered_{0};
  static inline std::atomic<std::size_t> scans_{0};
  static inline std::atomic<std::size_t> int4_scans_{0};
  static inline std::atomic<std::size_t> queries_{0};
  backend::cpu::Int8Kernel counting_{};
};

}  // namespace simile::tests
