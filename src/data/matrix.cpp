#include "data/matrix.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "data/wording.h"

namespace simile::data {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kCacheLineBytes = 64;

constexpr std::size_t RoundUp(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// Maps zeroed memory whose first byte lies on a huge page: maps a page more than needed and gives
// the ends back. Null when the kernel has none.
void* MapHugePages(std::size_t bytes) {
  const std::size_t wanted = RoundUp(bytes, kHugePageBytes);
  const std::size_t mapped = wanted + kHugePageBytes;
  void* const start =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(start);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(first) % kHugePageBytes;
  const std::size_t before = offset == 0 ? 0 : kHugePageBytes - offset;
  const std::size_t after = mapped - before - wanted;
  if (before != 0) munmap(first, before);
  if (after != 0) munmap(first + before + wanted, after);
  // Advice only: without huge pages the matrix works all the same.
  madvise(first + before, wanted, MADV_HUGEPAGE);
  return first + before;
}

void* AllocateZeroed(std::size_t bytes) {
  if (bytes >= kHugePageBytes) return MapHugePages(bytes);
  void* const data = std::aligned_alloc(kCacheLineBytes, RoundUp(bytes, kCacheLineBytes));
  if (data != nullptr) std::memset(data, 0, bytes);
  return data;
}

}  // namespace

void Matrix::Release::operator()(float* data) const {
  if (bytes_ >= kHugePageBytes) {
    munmap(data, RoundUp(bytes_, kHugePageBytes));
  } else {
    std::free(data);
  }
}

absl::StatusOr<Matrix> Matrix::Create(std::size_t row_count, std::size_t dim) {
  if (row_count == 0 || dim == 0) return Matrix(nullptr, row_count, dim);
  constexpr std::size_t kBytesMax = std::numeric_limits<std::size_t>::max() / 4;
  const std::size_t row_bytes = PaddedDim(dim) * sizeof(float);
  if (dim > kBytesMax / sizeof(float) || row_count > kBytesMax / row_bytes) {
    return absl::ResourceExhaustedError(
        fmt::format("{} rows of {} dimensions are more than this machine can address",
                    Grouped(row_count), Grouped(dim)));
  }
  const std::size_t bytes = row_count * row_bytes;
  auto* const data = static_cast<float*>(AllocateZeroed(bytes));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for {} rows of {} dimensions ({} bytes)", Grouped(row_count),
                    Grouped(dim), Grouped(bytes)));
  }
  return Matrix(std::unique_ptr<float[], Release>(data, Release{bytes}), row_count, dim);
}

}  // namespace simile::data
