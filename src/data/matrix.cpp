#include "data/matrix.h"

#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

// A matrix of this many bytes or more is mapped in pages.
constexpr std::size_t kPagedBytes = std::size_t{2} << 20;
constexpr std::size_t kCacheLineBytes = 64;

// Zeroed and aligned to a cache line. Null without memory.
float* AllocateLines(std::size_t bytes) {
  const std::size_t rounded = (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  void* const data = std::aligned_alloc(kCacheLineBytes, rounded);
  if (data != nullptr) std::memset(data, 0, rounded);
  return static_cast<float*>(data);
}

}  // namespace

std::size_t Matrix::BytesFor(std::size_t row_count, std::size_t dim) {
  const std::size_t bytes = row_count * PaddedDim(dim) * sizeof(float);
  return bytes < kPagedBytes ? bytes : base::PageBuffer::RoundedBytes(bytes);
}

absl::StatusOr<Matrix> Matrix::Create(std::size_t row_count, std::size_t dim) {
  if (row_count == 0 || dim == 0) return Matrix(row_count, dim);
  constexpr std::size_t kBytesMax = std::numeric_limits<std::size_t>::max() / 4;
  const std::size_t row_bytes = PaddedDim(dim) * sizeof(float);
  if (dim > kBytesMax / sizeof(float) || row_count > kBytesMax / row_bytes) {
    return absl::ResourceExhaustedError(
        fmt::format("{} rows of {} dimensions are more than this machine can address",
                    base::Grouped(row_count), base::Grouped(dim)));
  }
  const std::size_t bytes = row_count * row_bytes;
  Matrix matrix(row_count, dim);
  if (bytes < kPagedBytes) {
    matrix.lines_.reset(AllocateLines(bytes));
    if (matrix.lines_ != nullptr) return matrix;
  } else {
    try {
      matrix.pages_ = base::PageBuffer(bytes);
      return matrix;
    } catch (const std::bad_alloc&) {
    }
  }
  return absl::ResourceExhaustedError(
      fmt::format("no memory for {} rows of {} dimensions ({} bytes)", base::Grouped(row_count),
                  base::Grouped(dim), base::Grouped(bytes)));
}

}  // namespace simile::data
