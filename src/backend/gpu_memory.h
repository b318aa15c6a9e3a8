#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/gpu_options.h"

namespace simile::backend {

// The device memory of the GPU engine, to the byte. The plug-in allocates what these functions
// return, and `simile plan` prints it without a device. Inline, because the plug-in and the server
// are linked apart. The plug-in's workspace.cpp compares the sizes with the kernels' own types.
namespace gpu_sizes {

inline constexpr std::size_t kFp16 = 2;
inline constexpr std::size_t kQueryTerms = 64;
inline constexpr std::size_t kInt8Row = 8;
inline constexpr std::size_t kInt8Query = 12;
inline constexpr std::size_t kProof = 16;
inline constexpr std::size_t kKey = 8;
inline constexpr std::size_t kAnswerHit = 8;
inline constexpr std::size_t kHit = 8;
inline constexpr std::size_t kCandidates = 16;
inline constexpr std::size_t kGridRounds = 8;
inline constexpr unsigned kScanQueriesMax = 64;
inline constexpr unsigned kScanGroupsMax = 512;
inline constexpr unsigned kTileGranule = 128;
inline constexpr unsigned kSpareHits =
    64;  // extra places of a query's buffer, for hits that are not wanted

}  // namespace gpu_sizes

// Rows of a segment as kernels see them.
struct SegmentSize {
  unsigned row_count = 0;
  unsigned stride = 0;  // padded dimensions
};

// The number of places for masks of filters that each segment keeps, and the words of each place.
inline constexpr std::size_t kFilterPlaces = 64;
constexpr std::size_t WordsOfFilterPlace(unsigned row_count) {
  constexpr std::size_t kAlignment = 64;  // words: masks are read in whole lines
  return (row_count / 32 + kAlignment) / kAlignment * kAlignment;
}
// The words of a RowMask that hold the segment's rows. The first row may be inside a word.
constexpr std::size_t WordsOfMaskByRow(unsigned row_count) {
  return (std::size_t{row_count} + 63 + 63) / 64 * 2;
}

// Device bytes of the parts of a segment.
struct ResidentSize {
  std::uint64_t fp16_rows = 0;
  std::uint64_t rows = 0;  // 0 when the fp32 rows stay on the host
  std::uint64_t row_numbers = 0;
  std::uint64_t filters = 0;
  std::uint64_t int8_rows = 0;  // with all other memory of the int8 scan; 0: no int8 scan

  std::uint64_t total() const { return fp16_rows + rows + row_numbers + filters + int8_rows; }
};
// Bytes of an int8 row, which is rotated in whole blocks of 64 dimensions.
constexpr std::size_t Int8Stride(unsigned stride) { return (std::size_t{stride} + 63) / 64 * 64; }
inline ResidentSize PlanResident(const SegmentSize& segment, bool rows_on_device,
                                 bool with_int8 = false) {
  const std::uint64_t values = std::uint64_t{segment.row_count} * segment.stride;
  ResidentSize size;
  size.fp16_rows = values * gpu_sizes::kFp16;
  size.rows = rows_on_device ? values * sizeof(float) : 0;
  size.row_numbers = std::uint64_t{segment.row_count} * sizeof(unsigned);
  size.filters = (kFilterPlaces * WordsOfFilterPlace(segment.row_count) +
                  WordsOfMaskByRow(segment.row_count)) *
                 sizeof(unsigned);
  const std::size_t int8_stride = Int8Stride(segment.stride);
  if (with_int8 && segment.row_count > 0) {
    size.int8_rows = segment.row_count * std::uint64_t{int8_stride + gpu_sizes::kInt8Row} +
                     2 * int8_stride * sizeof(float);  // the signs of the rotation
  }
  return size;
}
// Plans with the fp32 rows and, if wanted, the int8 rows when both fit into the free bytes; else
// with the fp32 rows; else with neither. The fp32 rows come first because a canonical score from
// the host costs more than a pass over fp16.
inline ResidentSize PlanResidentIn(std::uint64_t free_bytes, const SegmentSize& segment,
                                   bool with_int8) {
  const ResidentSize with_all = PlanResident(segment, true, with_int8);
  // The next generation needs memory for its fp16 rows, so int8 rows leave that much free.
  const std::uint64_t next = with_int8 ? PlanResident(segment, false).total() : 0;
  if (with_all.total() + next <= free_bytes) return with_all;
  const ResidentSize with_rows = PlanResident(segment, true);
  return with_rows.total() <= free_bytes ? with_rows : PlanResident(segment, false);
}
// Device bytes that a load takes temporarily, in addition to ResidentSize: the maxima that its
// conversions measure, one double for fp16 or two floats for int8.
inline constexpr std::uint64_t kResidentBuildBytes = sizeof(std::uint64_t);

// The memory for all collections and the workspace: a share of the device's memory minus a reserve.
inline std::uint64_t GpuBudgetBytes(const GpuOptions& options, std::uint64_t device_bytes) {
  const auto share =
      static_cast<std::uint64_t>(static_cast<double>(device_bytes) * options.memory_fraction);
  return share - std::min(share, options.reserve_bytes);
}

// Offsets in the block that is copied to the device, and in the block that is copied back. Each
// block is one copy.
struct QueryBlock {
  std::size_t terms_at = 0;
  std::size_t vectors_at = 0;
  std::size_t bytes = 0;
};
struct AnswerBlock {
  std::size_t proofs_at = 0;
  std::size_t best_at = 0;
  std::size_t bytes = 0;
};
constexpr std::size_t AlignedPart(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
inline QueryBlock LayQueries(std::size_t slots, std::size_t stride) {
  QueryBlock block;
  block.vectors_at = AlignedPart(slots * gpu_sizes::kQueryTerms);
  block.bytes = block.vectors_at + slots * stride * sizeof(float);
  return block;
}
inline AnswerBlock LayAnswers(std::size_t slots, std::size_t best_stride) {
  AnswerBlock block;
  block.best_at = AlignedPart(slots * gpu_sizes::kProof);
  block.bytes = block.best_at + slots * best_stride * gpu_sizes::kAnswerHit;
  return block;
}
// The answer block for any split of answers_max over the queries of a pass.
inline std::size_t AnswerBytesMax(const WorkspaceSize& size) {
  return LayAnswers(size.queries_max, 0).bytes + size.answers_max * gpu_sizes::kAnswerHit;
}
inline std::size_t ScanQueryCount(const WorkspaceSize& size) {
  return std::min(size.queries_max, gpu_sizes::kScanQueriesMax);
}
// The maxima of the groups of a scan's sample, and of the groups of its second gate.
inline std::size_t MaximaCount(const WorkspaceSize& size) {
  return 2 * ScanQueryCount(size) * gpu_sizes::kScanGroupsMax;
}

// Device bytes of a workspace of this size, which all segments share.
inline std::uint64_t WorkspaceBytes(const WorkspaceSize& size) {
  const std::uint64_t queries = size.queries_max;
  const std::uint64_t hits = size.hits_max * (gpu_sizes::kHit + gpu_sizes::kKey + sizeof(unsigned));
  const std::uint64_t of_each_query =
      sizeof(float) + sizeof(unsigned) + gpu_sizes::kKey + gpu_sizes::kCandidates;
  return LayQueries(size.queries_max, size.stride_max).bytes + AnswerBytesMax(size) +
         queries * size.stride_max * gpu_sizes::kFp16 + 2 * size.tile_bytes + hits +
         queries * of_each_query + ScanQueryCount(size) * gpu_sizes::kInt8Query +
         MaximaCount(size) * sizeof(float) + gpu_sizes::kGridRounds +
         size.excluded_max * sizeof(unsigned) + 2 * size.blas_bytes;
}
// Query blocks on the host: two for started searches, and one for a further search.
inline constexpr unsigned kHostQueryBlocks = 3;
// Answer blocks on the host: one whose answers are copied, and two that are lent.
inline constexpr unsigned kHostAnswerBlocks = 3;
// Pinned host bytes of a workspace.
inline std::uint64_t WorkspaceHostBytes(const WorkspaceSize& size) {
  return kHostQueryBlocks * LayQueries(size.queries_max, size.stride_max).bytes +
         kHostAnswerBlocks * AnswerBytesMax(size);
}

// The size, then smaller sizes for when memory is short. First the tile is divided by two while it
// holds one granule per query, then everything that a batch needs is divided by two.
inline std::vector<WorkspaceSize> SizesToTry(WorkspaceSize size) {
  constexpr unsigned kQueriesMin = 16;
  std::vector<WorkspaceSize> sizes{size};
  const std::size_t tile_bytes_min =
      std::size_t{size.queries_max} * gpu_sizes::kTileGranule * gpu_sizes::kFp16;
  while (size.tile_bytes / 2 >= tile_bytes_min) {
    size.tile_bytes /= 2;
    sizes.push_back(size);
  }
  while (size.queries_max / 2 >= kQueriesMin) {
    size.queries_max /= 2;
    size.hits_max /= 2;
    size.answers_max /= 2;
    size.excluded_max /= 2;
    sizes.push_back(size);
  }
  return sizes;
}

// The most queries of one pass that wants this many hits for each. A larger batch takes several
// passes.
inline unsigned PassQueriesMax(const WorkspaceSize& size, unsigned hits) {
  return static_cast<unsigned>(std::min<std::size_t>(
      {size.queries_max, size.answers_max / hits, size.hits_max / (hits + gpu_sizes::kSpareHits)}));
}

}  // namespace simile::backend
