#include "backend/cpu/packed_queries.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "certificate/quantizer.h"

namespace simile::backend::cpu {
namespace {

using certificate::kCodeStep;
using certificate::kSideBySide;
static_assert(kCodeStep % kSideBySide == 0);

// The least scale at which the codes keep a kernel's limit (Int8Kernel::four_columns_max).
// REQUIRES: the limit is above 1.5.
float ScaleForFourColumns(std::span<const float> rotated, std::int32_t four_columns_max) {
  float most = 0;
  for (std::size_t first = 0; first < rotated.size(); first += 8) {
    std::array<float, 2> positive{};
    std::array<float, 2> negative{};
    for (std::size_t i = 0; i < 8; ++i) {
      const float value = rotated[first + i];
      positive[FourOf(i)] += std::max(value, 0.0F);
      negative[FourOf(i)] += std::max(-value, 0.0F);
    }
    most = std::max({most, positive[0], positive[1], negative[0], negative[1]});
  }
  // Rounding adds at most a half to each of four codes, 2 in all, and these sums and the scaling
  // err by parts in 2^20: four codes come to less than the limit + 1, and are whole numbers.
  return most / (static_cast<float>(four_columns_max) - 1.5F);
}

}  // namespace

void PackedQueries::Reset(const PackedRows& rows, std::int32_t four_columns_max,
                          std::size_t query_count) {
  const std::size_t tiles = (query_count + kTileQueries - 1) / kTileQueries;
  rotated_dim_ = rows.shape().rotated_dim;
  four_columns_max_ = four_columns_max;
  codes_.Reserve((tiles + 1) * kTileQueries * rotated_dim_);
  if (queries_.size() < query_count) queries_.resize(query_count);
}

void PackedQueries::Reserve(const PackedRows& rows, Scratch& scratch) {
  const std::size_t rotated_dim = rows.shape().rotated_dim;
  if (scratch.rotated.size() >= rotated_dim) return;
  scratch.codes.resize(rotated_dim);
  scratch.spare.resize(rotated_dim);
  scratch.rotated.resize(rotated_dim);  // last: any may throw
}

void PackedQueries::Pack(const PackedRows& rows, std::size_t index, const float* values,
                         std::size_t padded_dim, Scratch& scratch) {
  const std::size_t rotated_dim = rows.shape().rotated_dim;
  float* rotated = scratch.rotated.data();
  const std::size_t given = std::min(padded_dim, rotated_dim);
  std::copy_n(values, given, rotated);
  std::fill(rotated + given, rotated + rotated_dim, 0.0F);
  rows.rotation().Rotate<1>(rotated, scratch.spare.data());

  float scale = certificate::ScaleFor(certificate::LargestMagnitude({rotated, rotated_dim}),
                                      certificate::kByteCodeMax);
  if (four_columns_max_ > 0)
    scale = std::max(scale, ScaleForFourColumns({rotated, rotated_dim}, four_columns_max_));
  // The columns are taken as those of sixteen short vectors side by side, whose sums compilers form
  // together: a single sum would wait for each addition.
  const std::size_t short_dim = rotated_dim / kSideBySide;
  std::array<certificate::QuantizedSquares, kSideBySide> short_squares;
  std::array<double, kSideBySide> short_lengths;
  certificate::Quantize<kSideBySide>(rotated, short_dim, scale, certificate::kByteCodeMax,
                                     scratch.codes.data(), short_squares.data());
  certificate::SquaredLengths<kSideBySide>(rotated, short_dim, short_lengths.data());
  certificate::QuantizedSquares squares;
  double length_squared = 0;
  for (std::size_t i = 0; i < kSideBySide; ++i) {
    squares.residual += short_squares[i].residual;
    squares.decoded += short_squares[i].decoded;
    length_squared += short_lengths[i];
  }

  std::int8_t* packed = codes_.As<std::int8_t>() + CodesAt(index);
  std::int64_t code_sum = 0;
  for (std::size_t step = 0; step < rotated_dim / kCodeStep; ++step) {
    const std::int8_t* codes = scratch.codes.data() + step * kCodeStep;
    std::memcpy(packed + step * kTileQueries * kCodeStep, codes, kCodeStep);
    for (std::size_t i = 0; i < kCodeStep; ++i) code_sum += codes[i];
  }
  Query& query = queries_[index];
  query.norms = certificate::NormsOf(length_squared, squares);
  query.scale = static_cast<double>(scale);
  query.steps_per_unit = 1.0 / query.scale;
  query.offset = static_cast<double>(code_sum * (certificate::kByteCodeMax + 1));
}

}  // namespace simile::backend::cpu
