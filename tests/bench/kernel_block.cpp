#include "bench/kernel_block.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "certificate/quantizer.h"
#include "certificate/seeded_random.h"

namespace simile::bench {
namespace {

using backend::cpu::BlockScan;
using backend::cpu::Int8Kernel;
using backend::cpu::kGroupRows;
using backend::cpu::kTileQueries;

constexpr std::int32_t kCodeMax = certificate::kByteCodeMax;

// A normal variable lies this many standard deviations above its mean with probability 1e-5.
constexpr double kGateDeviations = 4.265;

std::size_t PaddedQueries(std::size_t query_count) {
  return (query_count + kTileQueries - 1) / kTileQueries * kTileQueries;
}

std::size_t HitsMax(const KernelBlock::Shape& shape) { return shape.query_count * shape.row_count; }

}  // namespace

KernelBlock::KernelBlock(const Shape& shape, std::uint64_t seed)
    : shape_(shape),
      codes_(kBlocks * shape.row_count * shape.dim),
      queries_(PaddedQueries(shape.query_count) * shape.dim),
      starts_(shape.query_count * sizeof(std::int32_t)),
      pairs_(HitsMax(shape) * sizeof(std::uint32_t)),
      sums_(HitsMax(shape) * sizeof(std::int32_t)),
      scratch_(backend::cpu::ScratchBytes(shape.query_count)),
      hits_{pairs_.As<std::uint32_t>(), sums_.As<std::int32_t>(), 0} {
  DrawCodes(seed);
  SetGates();
}

std::int8_t& KernelBlock::QueryCode(std::size_t query, std::size_t column) {
  const std::size_t panel = query / kTileQueries * kTileQueries * shape_.dim;
  return queries_.As<std::int8_t>()[panel + column / 64 * kTileQueries * 64 +
                                    query % kTileQueries * 64 + column % 64];
}

std::uint8_t& KernelBlock::RowByte(std::size_t block, std::size_t row, std::size_t column) {
  const std::size_t group = (block * shape_.row_count + row) / kGroupRows * kGroupRows * shape_.dim;
  return codes_
      .As<std::uint8_t>()[group + column / 4 * kGroupRows * 4 + row % kGroupRows * 4 + column % 4];
}

void KernelBlock::DrawCodes(std::uint64_t seed) {
  tests::SeededRandom random(seed);
  constexpr std::size_t width = 2 * kCodeMax + 1;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    for (std::size_t row = 0; row < shape_.row_count; ++row) {
      for (std::size_t column = 0; column < shape_.dim; ++column) {
        RowByte(block, row, column) = static_cast<std::uint8_t>(random.Below(width) + 1);
      }
    }
  }
  for (std::size_t query = 0; query < shape_.query_count; ++query) {
    for (std::size_t column = 0; column < shape_.dim; ++column) {
      const auto code = static_cast<std::int32_t>(random.Below(width)) - kCodeMax;
      QueryCode(query, column) = static_cast<std::int8_t>(code);
    }
  }
}

// Row bytes are uniform in 1 .. 255, so a query's sums are nearly normal.
void KernelBlock::SetGates() {
  auto* starts = starts_.As<std::int32_t>();
  constexpr double mean = kCodeMax + 1;
  const double variance = (std::pow(2.0 * kCodeMax + 1, 2) - 1) / 12;
  for (std::size_t query = 0; query < shape_.query_count; ++query) {
    double total = 0;
    double squares = 0;
    for (std::size_t column = 0; column < shape_.dim; ++column) {
      const double code = QueryCode(query, column);
      total += code;
      squares += code * code;
    }
    starts[query] = -static_cast<std::int32_t>(
        std::ceil(mean * total + kGateDeviations * std::sqrt(variance * squares)));
  }
}

std::size_t KernelBlock::Scan(const Int8Kernel& kernel, std::size_t turn) {
  assert(kernel.four_columns_max == 0);  // the codes are drawn without a limit
  const std::size_t block_bytes = shape_.row_count * shape_.dim;
  const auto* codes = codes_.As<const std::uint8_t>();
  BlockScan block{};
  block.codes = codes + turn % kBlocks * block_bytes;
  block.group_count = shape_.row_count / kGroupRows;
  block.code_dim = shape_.dim;
  block.queries = queries_.As<const std::int8_t>();
  block.query_count = shape_.query_count;
  block.starts = starts_.As<const std::int32_t>();
  block.hits = &hits_;
  block.next = codes + (turn + 1) % kBlocks * block_bytes;
  block.next_bytes = block_bytes;
  block.scratch = scratch_.As<std::int32_t>();
  kernel.scan(block);
  return hits_.count;
}

std::vector<KernelBlock::Hit> KernelBlock::PlainHits(std::size_t block) {
  std::vector<std::int32_t> rows(shape_.row_count * shape_.dim);
  for (std::size_t row = 0; row < shape_.row_count; ++row) {
    for (std::size_t column = 0; column < shape_.dim; ++column) {
      rows[row * shape_.dim + column] = RowByte(block, row, column);
    }
  }
  std::vector<Hit> hits;
  std::vector<std::int32_t> codes(shape_.dim);
  for (std::size_t query = 0; query < shape_.query_count; ++query) {
    for (std::size_t column = 0; column < shape_.dim; ++column) {
      codes[column] = QueryCode(query, column);
    }
    for (std::size_t row = 0; row < shape_.row_count; ++row) {
      const std::int32_t* bytes = rows.data() + row * shape_.dim;
      std::int32_t sum = starts_.As<const std::int32_t>()[query];
      for (std::size_t column = 0; column < shape_.dim; ++column) {
        sum += codes[column] * bytes[column];
      }
      if (sum >= 0) hits.emplace_back(backend::cpu::ToPair(query, row), sum);
    }
  }
  return hits;
}

absl::Status KernelBlock::Check(const Int8Kernel& kernel) {
  for (std::size_t block = 0; block < kBlocks; ++block) {
    kernel.enter(shape_.query_count);
    const std::size_t count = Scan(kernel, block);
    kernel.leave();
    std::vector<Hit> found;
    for (std::size_t i = 0; i < count; ++i) found.emplace_back(hits_.pairs[i], hits_.sums[i]);
    std::ranges::sort(found);
    const std::vector<Hit> expected = PlainHits(block);
    const auto [at, wanted] = std::ranges::mismatch(found, expected);
    if (at == found.end() && wanted == expected.end()) continue;
    return absl::InternalError(
        fmt::format("{}: {} hits where plain arithmetic has {}, from hit {} on", kernel.isa, count,
                    expected.size(), at - found.begin()));
  }
  return absl::OkStatus();
}

}  // namespace simile::bench
