#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "backend/cpu/int8_kernel.h"
#include "base/memory_pages.h"

namespace simile::bench {

// Random codes, packed as an Int8Kernel reads them, with a gate that few sums reach.
class KernelBlock {
 public:
  struct Shape {
    std::size_t query_count = 1'000;
    std::size_t row_count = 1'024;  // of each of two blocks, a multiple of 64
    std::size_t dim = 384;          // a multiple of 64
  };

  KernelBlock(const Shape& shape, std::uint64_t seed);

  // Scans one of the two blocks, by whether `turn` is even, while the kernel prefetches the other.
  // Returns how many hits there were.
  std::size_t Scan(const backend::cpu::Int8Kernel& kernel, std::size_t turn);

  // Whether the kernel's hits on both blocks are those of plain arithmetic, one product at a time.
  // Errors: kInternal with the first that differs.
  absl::Status Check(const backend::cpu::Int8Kernel& kernel);

  std::size_t query_count() const { return shape_.query_count; }
  std::size_t products() const { return shape_.query_count * shape_.row_count * shape_.dim; }
  std::size_t sums() const { return shape_.query_count * shape_.row_count; }

 private:
  static constexpr std::size_t kBlocks = 2;

  void DrawCodes(std::uint64_t seed);
  void SetGates();
  std::int8_t& QueryCode(std::size_t query, std::size_t column);
  std::uint8_t& RowByte(std::size_t block, std::size_t row, std::size_t column);
  // A query and a row (backend::cpu::ToPair) and their sum, the start included.
  using Hit = std::pair<std::uint32_t, std::int32_t>;
  std::vector<Hit> PlainHits(std::size_t block);

  const Shape shape_;
  base::PageBuffer codes_;    // [block][row_count * dim]
  base::PageBuffer queries_;  // [tile][dim / 64][16][64]
  base::PageBuffer starts_;   // [query]
  base::PageBuffer pairs_;    // [query_count * row_count]  and so the sums
  base::PageBuffer sums_;
  base::PageBuffer scratch_;
  backend::cpu::HitList hits_{};
};

}  // namespace simile::bench
