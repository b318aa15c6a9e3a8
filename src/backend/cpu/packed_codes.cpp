#include "backend/cpu/packed_codes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>

#include "backend/cpu/int8_kernel.h"
#include "base/split_mix.h"
#include "certificate/quantizer.h"

namespace simile::backend::cpu {
namespace {

using certificate::kSideBySide;
static_assert(kSideBySide == kGroupRows);

constexpr std::size_t kBlockRowsMax = 2'048;
constexpr std::size_t kChunkBlocksMax = 8;
// Threads claim whole chunks, so there must be enough for all threads.
constexpr std::size_t kChunksMin = 16;

std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// [16][count] -> [count][16], and back.
void SideBySide(const std::array<const float*, kSideBySide>& rows, std::size_t count,
                float* columns) {
  for (std::size_t column = 0; column < count; ++column) {
    for (std::size_t i = 0; i < kSideBySide; ++i)
      columns[column * kSideBySide + i] = rows[i][column];
  }
}
void OneByOne(const float* columns, std::size_t count,
              const std::array<float*, kSideBySide>& rows) {
  for (std::size_t i = 0; i < kSideBySide; ++i) {
    for (std::size_t column = 0; column < count; ++column)
      rows[i][column] = columns[column * kSideBySide + i];
  }
}

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
      positive[WhichFour(i)] += std::max(value, 0.0F);
      negative[WhichFour(i)] += std::max(-value, 0.0F);
    }
    most = std::max({most, positive[0], positive[1], negative[0], negative[1]});
  }
  // Rounding adds at most 1/2 to each of four codes, 2 in total; the sums and the scaling err by
  // parts in 2^20. So four codes, which are whole numbers, sum to less than the limit + 1.
  return most / (static_cast<float>(four_columns_max) - 1.5F);
}

}  // namespace

std::size_t PackedShape::position_count() const { return RoundUp(row_count, kRowsTogether); }

std::size_t PackedShape::bytes() const {
  const std::size_t bytes = base::PageBuffer::RoundedBytes(position_count() * rotated_dim) +
                            position_count() * sizeof(std::uint32_t) +
                            block_count() * sizeof(PackedRows::Block);
  if (!has_int4) return bytes;
  return bytes + base::PageBuffer::RoundedBytes(position_count() * rotated_dim / 2) +
         position_count() * sizeof(float) + block_count() * sizeof(PackedRows::Block);
}

PackedShape ChooseShape(std::size_t row_count, std::size_t dim, std::size_t block_bytes) {
  PackedShape shape;
  shape.row_count = row_count;
  shape.rotated_dim = certificate::RotatedDim(dim);
  const std::size_t rows = block_bytes / shape.rotated_dim / kRowsTogether * kRowsTogether;
  const std::size_t share = RoundUp(row_count / kChunksMin, kRowsTogether);
  shape.block_rows = std::clamp(std::min(rows, share), kRowsTogether, kBlockRowsMax);
  shape.chunk_blocks =
      std::clamp<std::size_t>(shape.block_count() / kChunksMin, 1, kChunkBlocksMax);
  return shape;
}

// Fills a PackedRows chunk by chunk, each by one thread.
class PackedRows::Builder {
 public:
  Builder(MatrixView rows, PackedRows& packed, Progress& progress)
      : rows_(rows), packed_(packed), shape_(packed.shape_), progress_(progress) {}

  void Work() {
    // All of the thread's memory, allocated before it claims a chunk.
    Scratch scratch(shape_);
    const std::size_t chunk_count = shape_.chunk_count();
    for (;;) {
      const std::size_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunk_count || progress_.cancelled.load(std::memory_order_relaxed)) return;
      PackChunk(chunk, scratch);
      progress_.chunks_done.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The bytes that one thread's Scratch takes.
  static std::size_t ScratchBytes(const PackedShape& shape) {
    const std::size_t chunk_rows = shape.chunk_blocks * shape.block_rows;
    return base::PageBuffer::RoundedBytes(chunk_rows * shape.rotated_dim * sizeof(float)) +
           chunk_rows * (sizeof(float) + sizeof(double) + 2 * sizeof(std::uint32_t));
  }

 private:
  struct Scratch {
    explicit Scratch(const PackedShape& shape)
        : rotated(shape.chunk_blocks * shape.block_rows * shape.rotated_dim * sizeof(float)),
          largest(shape.chunk_blocks * shape.block_rows),
          square(largest.size()),
          order(largest.size()),
          indices(largest.size()),
          columns(shape.rotated_dim * kSideBySide),
          spare(columns.size()),
          codes(columns.size()),
          int4(shape.has_int4 ? columns.size() : 0) {}

    base::PageBuffer rotated;            // [chunk rows, rotated_dim]
    std::vector<float> largest;          // [chunk row]  magnitude
    std::vector<double> square;          // [chunk row]  of its length
    std::vector<std::uint32_t> order;    // chunk rows, ascending by largest
    std::vector<std::uint32_t> indices;  // of the segment's rows, in that order
    std::vector<float> columns;          // sixteen rows side by side
    std::vector<float> spare;
    std::array<double, kSideBySide> lengths{};  // squared, of the sixteen rows
    std::vector<std::int8_t> codes;
    std::vector<std::uint8_t> int4;
  };

  void PackChunk(std::size_t chunk, Scratch& scratch) {
    const std::size_t chunk_rows = shape_.chunk_blocks * shape_.block_rows;
    const std::size_t first = chunk * chunk_rows;
    const std::size_t count =
        std::min(chunk_rows, shape_.row_count - std::min(first, shape_.row_count));
    const std::span<std::uint32_t> index_at = std::span(packed_.index_at_).subspan(first, count);
    for (std::size_t row = 0; row < count; row += kSideBySide) RotateSome(index_at, row, scratch);

    // Rows of similar scale share a block. They are sorted within a chunk only: each chunk is a
    // random sample of all rows, and so are the chunks scanned at any time.
    std::iota(scratch.order.begin(), scratch.order.begin() + static_cast<std::ptrdiff_t>(count),
              0U);
    std::sort(scratch.order.begin(), scratch.order.begin() + static_cast<std::ptrdiff_t>(count),
              [&](std::uint32_t a, std::uint32_t b) {
                return scratch.largest[a] != scratch.largest[b]
                           ? scratch.largest[a] < scratch.largest[b]
                           : a < b;
              });
    for (std::size_t i = 0; i < count; ++i) scratch.indices[i] = index_at[scratch.order[i]];
    std::copy_n(scratch.indices.begin(), count, index_at.begin());

    for (std::size_t row = 0; row < count; row += shape_.block_rows) {
      PackBlock((first + row) / shape_.block_rows, row, std::min(shape_.block_rows, count - row),
                scratch);
    }
  }

  // Rotates up to sixteen rows of the chunk from `row` on.
  void RotateSome(std::span<const std::uint32_t> index_at, std::size_t row,
                  Scratch& scratch) const {
    std::array<const float*, kSideBySide> from{};
    std::array<float*, kSideBySide> to{};
    const std::size_t last = index_at.size() - 1;
    for (std::size_t i = 0; i < kSideBySide; ++i) {
      from[i] = rows_.PaddedRow(index_at[std::min(row + i, last)]);
      to[i] = RotatedRow(scratch, std::min(row + i, last));
    }
    const std::size_t padded_dim = std::min(rows_.padded_dim(), shape_.rotated_dim);
    SideBySide(from, padded_dim, scratch.columns.data());
    std::fill(scratch.columns.begin() + static_cast<std::ptrdiff_t>(padded_dim * kSideBySide),
              scratch.columns.end(), 0.0F);
    packed_.rotation_.Rotate<kSideBySide>(scratch.columns.data(), scratch.spare.data());
    certificate::SquaredLengths<kSideBySide>(scratch.columns.data(), shape_.rotated_dim,
                                             scratch.lengths.data());
    OneByOne(scratch.columns.data(), shape_.rotated_dim, to);
    for (std::size_t i = row; i <= std::min(row + kSideBySide - 1, last); ++i) {
      scratch.largest[i] =
          certificate::LargestMagnitude({RotatedRow(scratch, i), shape_.rotated_dim});
      scratch.square[i] = scratch.lengths[i - row];
    }
  }

  // Quantizes the rows at [first, first + count) of the chunk's order.
  void PackBlock(std::size_t index, std::size_t first, std::size_t count, Scratch& scratch) {
    Block& block = packed_.blocks_[index];
    block.scale = certificate::ScaleFor(scratch.largest[scratch.order[first + count - 1]],
                                        certificate::kByteCodeMax);
    if (shape_.has_int4) packed_.int4_blocks_[index].scale = Int4Scale(first, count, scratch);
    const std::size_t place = index * shape_.block_rows;
    for (std::size_t row = 0; row < RoundUp(count, kRowsTogether); row += kGroupRows) {
      PackGroup(place + row, first + row, count - std::min(row, count), scratch);
    }
  }

  float Int4Scale(std::size_t first, std::size_t count, const Scratch& scratch) const {
    double square = 0;
    for (std::size_t i = first; i < first + count; ++i) square += scratch.square[scratch.order[i]];
    const auto numbers = static_cast<double>(count * shape_.rotated_dim);
    return packed_.int4_codes_.ScaleFor(square / numbers);
  }

  // Quantizes and packs up to sixteen rows. When a block ends with fewer, its last row is repeated;
  // a group without any row is zero.
  //   position  of the first row in the segment's order
  //   first     in the chunk's order
  void PackGroup(std::size_t position, std::size_t first, std::size_t count,
                 Scratch& scratch) const {
    if (count == 0) {
      std::fill(scratch.codes.begin(), scratch.codes.end(), std::int8_t{0});
      std::fill(scratch.int4.begin(), scratch.int4.end(), std::uint8_t{0});
    } else {
      count = std::min(count, kGroupRows);
      std::array<const float*, kSideBySide> from{};
      for (std::size_t i = 0; i < kSideBySide; ++i) {
        from[i] = RotatedRow(scratch, scratch.order[first + std::min(i, count - 1)]);
      }
      SideBySide(from, shape_.rotated_dim, scratch.columns.data());
      for (std::size_t i = 0; i < count; ++i)
        scratch.lengths[i] = scratch.square[scratch.order[first + i]];
      const std::size_t block = position / shape_.block_rows;
      QuantizeBytes(packed_.blocks_[block], count, scratch);
      if (shape_.has_int4) QuantizeInt4(packed_.int4_blocks_[block], position, count, scratch);
    }
    PackBytes(scratch.codes, packed_.codes_.As<std::uint8_t>() + position * shape_.rotated_dim);
    if (shape_.has_int4) {
      PackInt4(scratch.int4, packed_.int4_.As<std::uint8_t>() + position * shape_.rotated_dim / 2);
    }
  }

  // QuantizeBytes and QuantizeInt4 leave the codes of sixteen rows, [rotated_dim][16], in the
  // scratch.
  void QuantizeBytes(Block& block, std::size_t count, Scratch& scratch) const {
    std::array<certificate::QuantizedSquares, kSideBySide> squares;
    certificate::Quantize<kSideBySide>(scratch.columns.data(), shape_.rotated_dim, block.scale,
                                       certificate::kByteCodeMax, scratch.codes.data(),
                                       squares.data());
    for (std::size_t i = 0; i < count; ++i)
      block.norms.Include(certificate::BoundNorms(scratch.lengths[i], squares[i]));
  }
  void QuantizeInt4(Block& block, std::size_t position, std::size_t count, Scratch& scratch) const {
    std::array<certificate::QuantizedSquares, kSideBySide> squares;
    packed_.int4_codes_.Quantize(scratch.columns.data(), shape_.rotated_dim, block.scale,
                                 scratch.int4.data(), squares.data());
    for (std::size_t i = 0; i < count; ++i) {
      const certificate::QuantizedNorms norms =
          certificate::BoundNorms(scratch.lengths[i], squares[i]);
      packed_.int4_residuals_[position + i] = certificate::FloatAbove(norms.residual);
      block.norms.Include(norms);
    }
  }

  // [rotated_dim][16] codes -> [rotated_dim / 4][16][4] bytes.
  void PackBytes(std::span<const std::int8_t> codes, std::uint8_t* group) const {
    constexpr std::int32_t bias = certificate::kByteCodeMax + 1;
    for (std::size_t column = 0; column < shape_.rotated_dim; column += 4) {
      for (std::size_t row = 0; row < kGroupRows; ++row) {
        for (std::size_t i = 0; i < 4; ++i) {
          *group++ = static_cast<std::uint8_t>(codes[(column + i) * kGroupRows + row] + bias);
        }
      }
    }
  }

  // [rotated_dim][16] int4 -> [rotated_dim / 8][16][4] bytes.
  void PackInt4(std::span<const std::uint8_t> int4, std::uint8_t* group) const {
    for (std::size_t column = 0; column < shape_.rotated_dim; column += 8) {
      for (std::size_t row = 0; row < kGroupRows; ++row) {
        for (std::size_t i = 0; i < 4; ++i) {
          const unsigned low = int4[(column + i) * kGroupRows + row];
          const unsigned high = int4[(column + 4 + i) * kGroupRows + row];
          *group++ = static_cast<std::uint8_t>(low | high << 4);
        }
      }
    }
  }

  float* RotatedRow(const Scratch& scratch, std::size_t row) const {
    return scratch.rotated.As<float>() + row * shape_.rotated_dim;
  }

  const MatrixView rows_;
  PackedRows& packed_;
  const PackedShape& shape_;
  Progress& progress_;
  std::atomic<std::size_t> next_chunk_{0};
};

PackedRows::PackedRows(const PackedShape& shape, std::size_t dim)
    : shape_(shape),
      rotation_(dim),
      codes_(shape.position_count() * shape.rotated_dim),
      index_at_(shape.position_count(), kNoRow),
      blocks_(shape.block_count()),
      int4_codes_(certificate::kByteCodeMax),
      int4_(shape.has_int4 ? shape.position_count() * shape.rotated_dim / 2 : 0),
      int4_blocks_(shape.has_int4 ? shape.block_count() : 0),
      int4_residuals_(shape.has_int4 ? shape.position_count() : 0) {
  for (std::size_t int4 = 0; int4 < int4_bytes_.size(); ++int4) {
    int4_bytes_[int4] =
        static_cast<std::uint8_t>(int4_codes_.code(int4) + certificate::kByteCodeMax + 1);
  }
}

std::size_t PackedRows::RowsOfBlock(std::size_t index) const {
  return std::min(shape_.block_rows, shape_.position_count() - index * shape_.block_rows);
}

std::size_t PackedRows::BuildBytes(const PackedShape& shape, unsigned threads) {
  return std::min<std::size_t>(threads, shape.chunk_count()) * Builder::ScratchBytes(shape);
}

std::unique_ptr<const PackedRows> PackedRows::Build(MatrixView rows, const PackedShape& shape,
                                                    unsigned threads, Progress& progress) {
  std::unique_ptr<PackedRows> packed(new PackedRows(shape, rows.dim()));
  const std::span<std::uint32_t> indices = std::span(packed->index_at_).first(shape.row_count);
  std::iota(indices.begin(), indices.end(), 0U);
  base::Shuffle(indices);

  Builder builder(rows, *packed, progress);
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) {
    try {
      helpers.emplace_back([&builder] {
        try {
          builder.Work();
        } catch (const std::bad_alloc&) {
          // The thread has claimed no chunk yet, so the other threads do its share.
        }
      });
    } catch (const std::system_error&) {
      break;  // builds with fewer threads
    }
  }
  builder.Work();
  helpers.clear();  // joins
  if (progress.cancelled) return nullptr;
  return packed;
}

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
  scratch.rotated.resize(rotated_dim);  // the last step; each of these lines may throw
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
  // Treats the columns as sixteen short vectors side by side, whose sums compilers form together. A
  // single sum would wait for each addition.
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
  query.norms = certificate::BoundNorms(length_squared, squares);
  query.scale = static_cast<double>(scale);
  query.steps_per_unit = 1.0 / query.scale;
  query.offset = static_cast<double>(code_sum * (certificate::kByteCodeMax + 1));
}

}  // namespace simile::backend::cpu
